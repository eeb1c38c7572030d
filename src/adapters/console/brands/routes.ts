import { OperatorError } from '../../../domain/ground/operator-error.ts'
import { type BrandChange, freshBrand, putBrand, registerTemplate } from '../../../domain/operator/brands.ts'
import {
  type Brand,
  type BrandStatus,
  type BrandWithTexts,
  brandStatuses,
  mayBecome,
  type TemplateRegistration,
} from '../../../domain/texts/brand.ts'
import { registeredTarget } from '../../../domain/texts/brand-texts.ts'
import { previewOf } from '../../../domain/texts/preview.ts'
import { otpTemplateOf } from '../../../domain/texts/templates.ts'
import { done, html } from '../answers.ts'
import { field, linesOf, shownIn } from '../form-fields.ts'
import type { PageContext } from '../page-context.ts'
import { orAgain, type PageHandler } from '../page-handler.ts'
import { pathOf, previewFragment } from '../texts/messages.tsx'
import { textPath } from '../texts/page.tsx'
import { type BrandForm, brandPage, brandsPage, exampleName } from './page.tsx'

export function brandRoutes({ get, post, ports, settings, missing }: PageHandler): void {
  get('/admin/brands', async (_, pageContext) => html(brandsPage(pageContext, await ports.brands.list())))
  get('/admin/brands/new', (_, pageContext) => brandForm(pageContext, null, formOf(freshBrand(''))))
  post('/admin/brands', async ({ visit, form, by }, pageContext) => {
    const asked = brandAsked(form, field(form, 'slug'))
    return orAgain(
      async () => {
        const { slug } = await putBrand(by, asked.slug, changeOf(asked), { mustBeNew: true })
        return done(visit, `/admin/brands/${slug}`, `Created the brand ${slug}. It is active.`)
      },
      (text) => brandForm(pageContext, null, asked, text),
    )
  })
  get('/admin/brands/:slug', async ({ params: { slug = '' } }, pageContext) => {
    const brand = await ports.brands.bySlug(slug)
    return brand ? brandForm(pageContext, brand, formOf(brand)) : missing(pageContext, 'Brand not found')
  })
  post('/admin/brands/:slug', async ({ visit, form, params: { slug = '' }, by }, pageContext) => {
    const brand = await ports.brands.bySlug(slug)
    if (!brand) return missing(pageContext, 'Brand not found')
    const asked = brandAsked(form, slug)
    return orAgain(
      async () => {
        await putBrand(by, brand.slug, changedIn(asked, shownIn(form)))
        return done(visit, `/admin/brands/${brand.slug}`, 'Saved. Takes effect immediately.')
      },
      (text) => brandForm(pageContext, brand, asked, text, shownIn(form)),
    )
  })
  post('/admin/brands/:slug/templates/:key', async ({ visit, form, params: { slug = '', key = '' }, by }) => {
    const asked = form.get('remove') ? null : registrationAsked(form)
    const changed = await registerTemplate(by, slug, key, asked, { replaces: true })
    const { templateKey, lang } = registeredTarget(key)
    return done(
      visit,
      lang ? textPath(changed, { templateKey, channel: 'SMS', lang }) : pathOf(changed),
      `${form.get('remove') ? 'Removed' : 'Saved'} the registration of ${key}.`,
    )
  })
  post('/admin/preview', async ({ form }) => {
    const { texts } = (await ports.brands.bySlug(field(form, 'slug'))) ?? freshBrand('preview')
    const asked = brandAsked(form, 'preview')
    return html(previewFragment(previewOf(shownAs(asked, texts), codeTemplate, {}, settings)))
  })

  function brandForm(
    pageContext: PageContext,
    brand: BrandWithTexts | null,
    form: BrandForm,
    text?: string,
    was: Partial<BrandForm> = form,
  ): Response {
    const model = {
      brand,
      form,
      was: JSON.stringify(was),
      problems: text?.split('\n') ?? [],
      nextStatuses: brandStatuses.filter((status: BrandStatus) => brand && mayBecome(brand.status, status)),
      preview: previewOf(shownAs(form, brand?.texts), codeTemplate, {}, settings),
    }
    return html(brandPage(pageContext, model), text === undefined ? 200 : 409)
  }

  function registrationAsked(form: URLSearchParams): TemplateRegistration {
    const ids: Record<string, string> = {}
    for (const line of linesOf(form, 'ids')) {
      const [name = '', id = ''] = line.split('=').map((part) => part.trim())
      if (!settings.providerNames.includes(name) || id === '') {
        throw new OperatorError(
          `"${line}" is not PROVIDER=ID. PROVIDER must be one of ${settings.providerNames.join(', ')}.`,
        )
      }
      ids[name] = id
    }
    const maxLength = field(form, 'maxLength')
    return {
      id: field(form, 'id') || null,
      ids,
      senderId: field(form, 'senderId') || null,
      maxLength: maxLength === '' ? null : Number(maxLength),
    }
  }
}

const codeTemplate = otpTemplateOf(undefined)

/** The brand as in the form. */
function shownAs(form: BrandForm, texts = freshBrand('').texts): BrandWithTexts {
  const asked = changeOf(form)
  return { ...freshBrand('preview'), ...asked, displayName: asked.displayName || exampleName, texts }
}

function formOf(brand: Brand): BrandForm {
  const { slug, displayName, notifyTemplates, dltEnabled, loginIdEnabled, lang } = brand
  return {
    ...{ slug, displayName, notifyTemplates, dltEnabled, loginIdEnabled, lang },
    domain: brand.domain ?? '',
    entityId: brand.entityId ?? '',
    androidHash: brand.androidHash ?? '',
    logoUrl: brand.logoUrl ?? '',
    color: brand.color ?? '',
    dltAllowList: brand.dltAllowList.join('\n'),
  }
}

/** Only the fields changed in this form, so that a concurrent change of other fields is kept. */
function changedIn(asked: BrandForm, shown: Partial<BrandForm>): BrandChange {
  const isSame = (field: keyof BrandForm) => JSON.stringify(asked[field]) === JSON.stringify(shown[field])
  const changes = Object.entries(changeOf(asked)).filter(([field]) => !isSame(field as keyof BrandForm))
  return Object.fromEntries(changes)
}

function brandAsked(form: URLSearchParams, slug: string): BrandForm {
  return {
    slug,
    displayName: field(form, 'displayName'),
    notifyTemplates: form.getAll('notifyTemplates'),
    dltEnabled: form.has('dltEnabled'),
    loginIdEnabled: form.has('loginIdEnabled'),
    lang: field(form, 'lang'),
    domain: field(form, 'domain'),
    entityId: field(form, 'entityId'),
    androidHash: field(form, 'androidHash'),
    logoUrl: field(form, 'logoUrl'),
    color: field(form, 'color'),
    dltAllowList: linesOf(form, 'dltAllowList').join('\n'),
  }
}

function changeOf({ slug: _, ...asked }: BrandForm) {
  return {
    ...asked,
    lang: asked.lang || freshBrand('').lang,
    domain: asked.domain || null,
    entityId: asked.entityId || null,
    androidHash: asked.androidHash || null,
    logoUrl: asked.logoUrl || null,
    color: asked.color || null,
    dltAllowList: asked.dltAllowList.split('\n').filter(Boolean),
  }
}
