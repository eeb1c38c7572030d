import type { AuditRecord } from '../../../domain/ground/audit.ts'
import { type Channel, parseChannel } from '../../../domain/ground/contact.ts'
import { canonicalTag } from '../../../domain/ground/languages.ts'
import { OperatorError } from '../../../domain/ground/operator-error.ts'
import { inWords, readVariable, removeText, setText } from '../../../domain/operator/texts.ts'
import { type BrandWithTexts, ownTemplateKeys } from '../../../domain/texts/brand.ts'
import { type DeclaredVariable, isSameTarget, type TextTarget } from '../../../domain/texts/brand-texts.ts'
import { builtInParts, draftPreview, type TextParts } from '../../../domain/texts/drafts.ts'
import { isOtpKey } from '../../../domain/texts/otp-texts.ts'
import { templateKeys, templateOf } from '../../../domain/texts/templates.ts'
import { placeholdersFor } from '../../../domain/texts/text-problems.ts'
import { headersOf, mailPolicy } from '../../pages/static.ts'
import { done, html, seeOther } from '../answers.ts'
import { sampleValues } from '../brands/routes.ts'
import { field, linesOf } from '../form-fields.ts'
import type { PageContext } from '../page-context.ts'
import { orAgain, type PageHandler, type PageRequest } from '../page-handler.ts'
import {
  draftFragment,
  type TextForm,
  type TextModel,
  type TextRow,
  type TextsModel,
  textPage,
  textPath,
  textsPage,
  textsPath,
} from './page.tsx'

const historyLength = 200
const path = '/admin/brands/:slug/texts'

export function textRoutes({ get, post, ports, settings, missing }: PageHandler): void {
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

  get(
    path,
    ofBrand((brand, _, pageContext) => listed(pageContext, brand)),
  )
  get(
    `${path}/new`,
    ofBrand((brand, _, pageContext) => {
      const target = { templateKey: '', channel: 'SMS', lang: brand.lang } as const
      return editor(pageContext, brand, { ...target, ...noText, variables: '' }, { isNewTemplate: true })
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
    `${path}/open`,
    ofBrand((brand, { form }, pageContext) => {
      const [key = '', channel] = field(form, 'template').split(' ')
      const target = targetIn(brand, key, parseChannel(channel), field(form, 'lang'))
      if (target) return seeOther(textPath(brand, target))
      const asked = { template: field(form, 'template'), lang: field(form, 'lang') }
      const problem = 'The language must be a BCP 47 tag, such as hi or pt-BR.'
      return listed(pageContext, brand, { form: asked, problem }, 409)
    }),
  )
  post(
    path,
    ofBrand((brand, { form, visit, by }, pageContext) => {
      const typed = textAsked(form)
      const { templateKey: key, channel, lang, subject, text, html: mailHtml } = typed
      // Another operator may have changed the variables in another language.
      const isSameVariables = typed.variables === linesOf(form, 'was').join('\n')
      const asked = isSameVariables ? { ...typed, variables: variablesOf(brand, key) } : typed
      const seen = {
        version: Number(field(form, 'version')),
        updatedAt: Number(form.get('updatedAt') ?? '') || undefined,
      }
      const isNewTemplate = form.has('isNew')
      const about = { brand: brand.slug, key, channel, lang, ...seen }
      return orAgain(
        async () => {
          if (form.has('remove')) {
            await removeText(by, about)
            const what = templateOf(key) ? 'The built-in text is used again.' : `Removed the text of ${key}.`
            return done(visit, textsPath(brand), what)
          }
          if (isNewTemplate && (templateOf(key) || ownTemplateKeys(brand).includes(key))) {
            throw new OperatorError(`The template ${key} already exists.`)
          }
          const stored = await setText(by, {
            ...about,
            text,
            subject: subject || null,
            html: mailHtml || null,
            ...(!templateOf(key) &&
              !isSameVariables && { variables: linesOf(form, 'variables').map(readVariable) }),
          })
          const words = `Saved version ${stored.text.version}. Takes effect immediately.`
          return done(visit, textPath(brand, stored.text), words)
        },
        (problem) => editor(pageContext, brand, asked, { isNewTemplate, problems: problem.split('\n') }),
      )
    }),
  )
  post(
    `${path}/preview`,
    ofBrand((brand, { form }) => {
      const asked = textAsked(form)
      return html(draftFragment({ preview: previewFor(brand, asked, sampleValues(form)) }))
    }),
  )
  post(
    `${path}/mail`,
    ofBrand((brand, { form }) => {
      const { problems, mail } = previewFor(brand, textAsked(form), {})
      const type = mail ? 'text/html' : 'text/plain'
      const headers = { ...headersOf(type, mailPolicy), 'cache-control': 'no-store' }
      return new Response(mail?.html ?? problems.join('\n'), { headers })
    }),
  )

  async function listed(
    pageContext: PageContext,
    brand: BrandWithTexts,
    part: Partial<Pick<TextsModel, 'form' | 'problem'>> = {},
    status = 200,
  ): Promise<Response> {
    const records = await changesOf(brand)
    const rows = rowsOf(brand).map((target): TextRow => {
      const own = brand.texts.get(target) ?? null
      const { text } = own ?? builtInParts(target, settings) ?? noText
      const setBy = own && records.find((record) => isOf(target, record) && record.action === 'text.set')
      return { ...target, text, own, actor: setBy?.actor ?? null }
    })
    const empty = { form: { template: '', lang: '' }, problem: null }
    return html(textsPage(pageContext, { brand, rows, ...empty, ...part }), status)
  }

  async function editor(
    pageContext: PageContext,
    brand: BrandWithTexts,
    form: TextForm,
    part: Partial<Pick<TextModel, 'isNewTemplate' | 'problems'>> = {},
  ): Promise<Response> {
    const records = await changesOf(brand)
    const model: TextModel = {
      brand,
      form,
      own: brand.texts.get(form) ?? null,
      builtIn: builtInParts(form, settings),
      placeholders: [...placeholdersFor(form.templateKey, declaredIn(form)).keys()],
      preview: previewFor(brand, form, {}),
      history: records.filter((record) => isOf(form, record)),
      providers: settings.providerNames,
      isNewTemplate: false,
      problems: [],
      ...part,
    }
    return html(textPage(pageContext, model), model.problems.length > 0 ? 409 : 200)
  }

  function startingForm(brand: BrandWithTexts, target: TextTarget): TextForm {
    const { templateKey } = target
    const own = brand.texts.get(target)
    const other = brand.texts.all.find((each) => each.templateKey === templateKey)
    const { subject, text, html: mailHtml } = own ?? builtInParts(target, settings) ?? other ?? noText
    const variables = variablesOf(brand, templateKey)
    return { ...target, subject: subject ?? '', text, html: mailHtml ?? '', variables }
  }

  function previewFor(brand: BrandWithTexts, form: TextForm, values: Readonly<Record<string, string>>) {
    // A new template shows its message before it has a key.
    const templateKey = form.templateKey || 'NEW_TEMPLATE'
    return draftPreview(brand, { ...form, templateKey, variables: declaredIn(form) }, values, settings)
  }

  function changesOf({ slug: target }: BrandWithTexts): Promise<readonly AuditRecord[]> {
    return ports.audit.list({ target, actions: ['text.set', 'text.removed'], limit: historyLength })
  }
}

/** One per line, as in the form. */
function variablesOf({ texts }: BrandWithTexts, templateKey: string): string {
  return (texts.variables.get(templateKey) ?? []).map(inWords).join('\n')
}

const noText: TextParts = { subject: '', text: '', html: '' }

/** Templates in the brand's language, and all of its own texts. */
function rowsOf({ lang, texts, loginIdEnabled }: BrandWithTexts): readonly TextTarget[] {
  const builtIn = templateKeys
    .filter((key) => loginIdEnabled || key !== 'LOGIN_OTP_WITH_ID')
    .flatMap((templateKey): TextTarget[] => [
      { templateKey, channel: 'SMS', lang },
      ...(isOtpKey(templateKey) ? [{ templateKey, channel: 'EMAIL', lang } as const] : []),
    ])
  const inOrder = templateKeys.flatMap((key) => [`${key} SMS`, `${key} EMAIL`])
  const place = ({ templateKey, channel }: TextTarget) =>
    templateOf(templateKey) ? inOrder.indexOf(`${templateKey} ${channel}`) : inOrder.length
  const others = texts.all.filter((own) => !builtIn.some((each) => isSameTarget(each, own)))
  return [...builtIn, ...others].sort((a, b) => place(a) - place(b))
}

function isOf({ templateKey, channel, lang }: TextTarget, { details }: AuditRecord): boolean {
  return details.template === templateKey && details.channel === channel && details.lang === lang
}

function targetIn(
  brand: BrandWithTexts,
  templateKey: string,
  channel: Channel | undefined,
  tag: string,
): TextTarget | undefined {
  const lang = canonicalTag(tag)
  const isKnown = templateOf(templateKey) !== undefined || ownTemplateKeys(brand).includes(templateKey)
  if (!isKnown || !lang || !channel || (channel === 'EMAIL' && !isOtpKey(templateKey))) return undefined
  return { templateKey, channel, lang }
}

function textAsked(form: URLSearchParams): TextForm {
  return {
    templateKey: field(form, 'templateKey'),
    channel: parseChannel(form.get('channel')) ?? 'SMS',
    lang: field(form, 'lang'),
    subject: field(form, 'subject'),
    // Sent as it is: carriers compare it with the registered text.
    text: (form.get('text') ?? '').replaceAll('\r\n', '\n'),
    html: (form.get('html') ?? '').replaceAll('\r\n', '\n'),
    variables: linesOf(form, 'variables').join('\n'),
  }
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
