import { type Channel, parseChannel } from '../../../domain/ground/contact.ts'
import { canonicalTag } from '../../../domain/ground/languages.ts'
import { OperatorError } from '../../../domain/ground/operator-error.ts'
import { spendingSpan } from '../../../domain/money/spending.ts'
import { costOfSegments } from '../../../domain/money/text-cost.ts'
import type { Entered } from '../../../domain/operator/fields.ts'
import { textRecords, textVersions } from '../../../domain/operator/text-versions.ts'
import {
  inWords,
  readVariable,
  textDiscard,
  textPublish,
  textRestore,
  textSet,
} from '../../../domain/operator/texts.ts'
import type { BrandWithTexts } from '../../../domain/texts/brand.ts'
import type { DeclaredVariable, TextTarget } from '../../../domain/texts/brand-texts.ts'
import { builtInParts, draftPreview, type TextParts } from '../../../domain/texts/drafts.ts'
import { templateIn } from '../../../domain/texts/notify-texts.ts'
import { isOtpKey } from '../../../domain/texts/otp-texts.ts'
import { previewOf, previewsOf } from '../../../domain/texts/preview.ts'
import { templateOf } from '../../../domain/texts/templates.ts'
import { textMatrix } from '../../../domain/texts/text-matrix.ts'
import { placeholdersFor } from '../../../domain/texts/text-problems.ts'
import { headersOf, mailPolicy } from '../../pages/static.ts'
import { done, html } from '../answers.ts'
import { enteredIn } from '../form-access.ts'
import type { PageContext } from '../page-context.ts'
import type { PageHandler, PageRequest } from '../page-handler.ts'
import { textDifferences } from './difference.ts'
import {
  type DraftReadingModel,
  draftFragment,
  type TextForm,
  type TextModel,
  textPage,
  textPath,
  textsPage,
} from './page.tsx'

const path = '/admin/brands/:slug/texts'

export function textRoutes({ get, post, after, ports, settings, missing }: PageHandler): void {
  const ofBrand =
    (
      page: (
        brand: BrandWithTexts,
        pageRequest: PageRequest,
        pageContext: PageContext,
      ) => Promise<Response> | Response,
    ) =>
    async (pageRequest: PageRequest, pageContext: PageContext): Promise<Response> => {
      const brand = await ports.brands.bySlug(pageRequest.params.slug ?? '')
      return brand ? page(brand, pageRequest, pageContext) : missing(pageContext, 'Brand not found')
    }

  for (const action of [textSet, textPublish, textDiscard, textRestore]) {
    after(action, ({ text }, entered, { visit, params: { slug = '' } }) => {
      const { key, lang, email } = entered
      const channel = email ? 'EMAIL' : 'SMS'
      return done(visit, textPath({ slug }, { templateKey: `${key}`, channel, lang: `${lang}` }), text)
    })
  }
  get(
    path,
    ofBrand((brand, { url: { searchParams } }, pageContext) => {
      const asked = searchParams.getAll('lang').find((tag) => tag.trim() !== '') ?? ''
      return html(textsPage(pageContext, brand, textMatrix(brand, settings, canonicalTag(asked)), asked))
    }),
  )
  get(
    `${path}/new`,
    ofBrand((brand, _, pageContext) => {
      const { rejected } = pageContext
      if (rejected?.action === textSet.name) {
        const { values } = rejected
        const form = formOf(values)
        const isNewTemplate = values.mustBeNew === true || !canonicalTag(form.lang)
        // Another operator may have changed the variables in another language.
        const isSame = `${values.variables}` === `${values.seenVariables}`
        const variables = isSame ? variablesOf(brand, form.templateKey) : form.variables
        return editor(pageContext, brand, { ...form, variables }, isNewTemplate)
      }
      const target = { templateKey: '', channel: 'SMS', lang: brand.lang } as const
      return editor(pageContext, brand, { ...target, ...noText, variables: '' }, true)
    }),
  )
  get(
    `${path}/:key/:channel/:lang`,
    ofBrand((brand, { params: { key = '', channel, lang = '' } }, pageContext) => {
      const target = targetIn(brand, key, parseChannel(channel), lang)
      return target
        ? editor(pageContext, brand, startingForm(brand, target))
        : missing(pageContext, 'Text not found')
    }),
  )
  post(
    `${path}/preview`,
    ofBrand(async (brand, { form }) => {
      const asked = formOf(enteredIn(textSet, form))
      return html(draftFragment(await readingOf(brand, asked, sampleValues(form))))
    }),
  )
  post(
    `${path}/mail`,
    ofBrand((brand, { form }) => {
      const { problems, mail } = previewFor(brand, formOf(enteredIn(textSet, form)), {})
      const type = mail ? 'text/html' : 'text/plain'
      const headers = { ...headersOf(type, mailPolicy), 'cache-control': 'no-store' }
      return new Response(mail?.html ?? problems.join('\n'), { headers })
    }),
  )

  async function editor(
    pageContext: PageContext,
    brand: BrandWithTexts,
    form: TextForm,
    isNewTemplate = false,
  ): Promise<Response> {
    const own = brand.texts.get(form)
    const model: TextModel = {
      brand,
      form,
      own: own ?? null,
      draft: brand.texts.draft(form) ?? null,
      builtIn: builtInParts(form, settings),
      placeholders: [...placeholdersFor(form.templateKey, declaredIn(form)).keys()],
      reading: await readingOf(brand, form, {}),
      versions: textVersions(form, own, await textRecords(ports.audit, brand.slug)),
      isNewTemplate,
    }
    return html(textPage(pageContext, model))
  }

  function startingForm(brand: BrandWithTexts, target: TextTarget): TextForm {
    const { templateKey } = target
    const draft = brand.texts.draft(target)
    const own = draft ?? brand.texts.get(target)
    const other = brand.texts.all.find((each) => each.templateKey === templateKey)
    const { subject, text, html: mailHtml } = own ?? builtInParts(target, settings) ?? other ?? noText
    const variables = draft?.variables?.map(inWords).join('\n') ?? variablesOf(brand, templateKey)
    return { ...target, subject: subject ?? '', text, html: mailHtml ?? '', variables }
  }

  function previewFor(brand: BrandWithTexts, form: TextForm, values: Readonly<Record<string, string>>) {
    // A new template shows its message before it has a key.
    const templateKey = form.templateKey || 'NEW_TEMPLATE'
    return draftPreview(brand, { ...form, templateKey, variables: declaredIn(form) }, values, settings)
  }

  async function readingOf(
    brand: BrandWithTexts,
    form: TextForm,
    values: Readonly<Record<string, string>>,
  ): Promise<DraftReadingModel> {
    const preview = previewFor(brand, form, values)
    const published = brand.texts.get(form) ?? builtInParts(form, settings)
    const later = preview.sms?.segments?.count
    const template = templateIn(brand, form.templateKey)
    const sent =
      template &&
      published &&
      preview.sms &&
      previewOf({ ...brand, lang: form.lang }, template, values, settings)
    const now = sent?.segments?.count
    const isOther = later !== undefined && now !== undefined && now !== later
    const cost = isOther ? await costOf(brand, form.templateKey, { now, later }) : null
    const differences = published && form.templateKey !== '' ? textDifferences(published, form) : {}
    return { preview, lang: form.lang, differences, cost }
  }

  async function costOf(brand: BrandWithTexts, templateKey: string, change: { now: number; later: number }) {
    const { slug } = brand
    const { from, until } = spendingSpan('30-days', ports.now())
    const [all, messages] = await Promise.all([
      ports.eventLog.spending(from, until),
      ports.eventLog.acceptedSms(slug, from),
    ])
    const segments = new Map(
      previewsOf(brand, settings).map((each) => [each.templateKey, each.segments?.count ?? 1]),
    )
    const spending = all.filter((each) => each.brand === slug)
    return costOfSegments(templateKey, { spending, messages, segments }, change)
  }
}

/** One per line, as in the form. */
function variablesOf({ texts }: BrandWithTexts, templateKey: string): string {
  return (texts.variables.get(templateKey) ?? []).map(inWords).join('\n')
}

const noText: TextParts = { subject: '', text: '', html: '' }

function targetIn(
  brand: BrandWithTexts,
  templateKey: string,
  channel: Channel | undefined,
  tag: string,
): TextTarget | undefined {
  const lang = canonicalTag(tag)
  const { all, drafts } = brand.texts
  const isKnown =
    templateOf(templateKey) !== undefined ||
    [...all, ...drafts].some((each) => each.templateKey === templateKey)
  if (!isKnown || !lang || !channel || (channel === 'EMAIL' && !isOtpKey(templateKey))) return undefined
  return { templateKey, channel, lang }
}

/** What is entered for `text set`. */
function formOf(entered: Entered): TextForm {
  const written = (name: string) => [entered[name] ?? ''].flat().join('\n').replaceAll('\r\n', '\n')
  return {
    templateKey: written('key'),
    channel: entered.email ? 'EMAIL' : 'SMS',
    lang: written('lang'),
    subject: written('subject'),
    // Sent as it is: carriers compare it with the registered text.
    text: written('text'),
    html: written('html'),
    variables: written('variables'),
  }
}

/** By variable, of a preview. */
function sampleValues(form: URLSearchParams): Record<string, string> {
  return Object.fromEntries(
    [...form].flatMap(([name, value]) => (name.startsWith('var.') ? [[name.slice(4), value]] : [])),
  )
}

/** Without the lines that cannot be read. */
function declaredIn({ variables }: TextForm): readonly DeclaredVariable[] {
  return variables.split('\n').flatMap((line) => {
    try {
      return [readVariable(line)]
    } catch (error) {
      if (error instanceof OperatorError) return []
      throw error
    }
  })
}
