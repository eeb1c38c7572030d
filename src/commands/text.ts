import { type Command, InvalidArgumentError } from 'commander'
import { codeSettings } from '../config/server-settings.ts'
import { Settings } from '../config/settings.ts'
import { characters } from '../domain/ground/body.ts'
import { counted } from '../domain/ground/format.ts'
import { canonicalTag } from '../domain/ground/languages.ts'
import { InvalidInput, OperatorError } from '../domain/ground/operator-error.ts'
import { requiredBrand } from '../domain/operator/brands.ts'
import { textGroup, textRow } from '../domain/operator/texts.ts'
import type { Brands } from '../domain/texts/brand.ts'
import type { BrandText } from '../domain/texts/brand-texts.ts'
import {
  compareRegistered,
  type DltBrand,
  type DltFinding,
  type DltSettings,
  type DltText,
  dltCategory,
  dltText,
  dltTexts,
  exportText,
  lintText,
} from '../domain/texts/dlt.ts'
import type { PreviewSettings } from '../domain/texts/preview.ts'
import type { SmsContent } from '../domain/texts/sms.ts'
import { groupCommand } from './actions.ts'
import { adviceWords } from './advice.ts'
import { complain, type Env, exit, fileText, listOfPairs, print, printTable, withContext } from './common.ts'
import { draftMeaning, valueMeaning, valuesIn } from './test-send.ts'

const slugMeaning = 'the brandId'
const keyMeaning = 'the template, such as LOGIN_OTP'

export function textCommands(program: Command, env: Env): void {
  const text = groupCommand(program, textGroup)
  text
    .command('list')
    .description("list a brand's own texts")
    .argument('<slug>', slugMeaning)
    .option('--drafts', 'list the drafts instead')
    .option('--json', 'print JSON')
    .action((slug: string, { json, drafts }: { json?: true; drafts?: true }) =>
      withContext(env, async ({ brands }) => {
        const rows = await textRows(brands, slug, drafts)
        const none = drafts ? 'The brand has no drafts.' : 'The brand has only the built-in texts.'
        if (rows.length === 0 && !json) complain(none)
        else {
          printTable(json, rows, [
            ['TEMPLATE', ({ templateKey }) => templateKey],
            ['CHANNEL', ({ channel }) => channel],
            ['LANG', ({ lang }) => lang],
            ['VERSION', ({ version }) => String(version)],
            ['UPDATED', ({ updatedAt }) => updatedAt],
            ['TEXT', (row) => excerpt(row.text)],
          ])
        }
      }),
    )
  targeted(text, 'preview', 'print a message with sample values')
    .option('--value <name=value>', valueMeaning, listOfPairs)
    .option('--draft', draftMeaning)
    .action((slug: string, key: string, { lang, email, value, draft }: PreviewOptions) =>
      withContext(env, async ({ brands }) => {
        const brand = await requiredBrand(brands, slug)
        const settings = await textSettings(env)
        const { sampleMessage } = await import('../domain/operator/test-send.ts')
        const sample = { key, lang, values: valuesIn(value), isDraft: draft }
        const message = sampleMessage(brand, email ? 'EMAIL' : 'SMS', sample, settings)
        if ('mail' in message) print(`Subject: ${message.mail.subject}\n\n${message.mail.text.trimEnd()}`)
        else for (const line of smsLines(message.sms, brand.dltEnabled, settings)) print(line)
      }),
    )
  dltCommands(text, program, env)
}

/** For India's DLT portals. */
function dltCommands(text: Command, program: Command, env: Env): void {
  text
    .command('lint')
    .description('check SMS texts against the DLT rules of India; exits with status 1 after an error')
    .argument('<slug>', slugMeaning)
    .argument('[key]', 'the template; by default all texts that the brand uses')
    .option('--lang <tag>', 'the language of the text; by default all')
    .option('--registered <file>', 'compare with the text of the portal; - for standard input')
    .option(
      '--variable-length <n>',
      'the greatest length of a value, 30 to 40; the default is that of the registration, else 30',
      variableLength,
    )
    .option('--json', 'print JSON')
    .action((slug: string, key: string | undefined, options: LintOptions) =>
      withContext(env, async ({ brands }) => {
        const brand = await requiredBrand(brands, slug)
        const settings = await textSettings(env)
        const { json, registered: file, variableLength: maxLength } = options
        if (file !== undefined && key === undefined) {
          throw new InvalidInput('--registered compares one text. Name its template.')
        }
        const registered = file === undefined ? undefined : await fileText(file)
        const texts = textsToLint(brand, key, options)
        if (texts.length === 0 && !json) {
          complain('The brand has no SMS text of its own, and does not use the registered route (DLT).')
        }
        const results = texts.map((each) => {
          const text = { ...each, maxLength }
          const compared = registered === undefined ? [] : compareRegistered(text, registered, settings)
          const findings = [...lintText(text, settings), ...compared]
          return {
            text,
            findings: findings.map((found) => ({ ...found, fix: adviceWords(program, found.fix) })),
          }
        })
        for (const line of json ? [JSON.stringify(results.flatMap(findingRows))] : results.flatMap(listed)) {
          print(line)
        }
        const isEqual = !results.some(({ findings }) =>
          findings.some(({ rule }) => rule === 'registered-text'),
        )
        if (registered !== undefined && isEqual && !json) print('The registered text is what otpost sends.')
        const hasError = results.some(({ findings }) => findings.some(({ level }) => level === 'error'))
        process.exitCode = hasError ? exit.failed : exit.ok
      }),
    )
  text
    .command('export')
    .description('print an SMS text with the tags of a DLT portal')
    .argument('<slug>', slugMeaning)
    .argument('<key>', 'the template')
    .option('--lang <tag>', "the language of the text; the default is the brand's")
    .action((slug: string, key: string, { lang }: { lang?: string }) =>
      withContext(env, async ({ brands }) => {
        const settings = await textSettings(env)
        const exported = exportText(textIn(await requiredBrand(brands, slug), key, lang), settings)
        print(exported)
        const type = settings.segmentsOf(exported).encoding === 'UCS-2' ? 'Unicode' : 'Text'
        process.stderr.write(`Category: ${dltCategory(key)}. Message type: ${type}.\n`)
      }),
    )
}

function smsLines({ text, template }: SmsContent, hasDlt: boolean, { segmentsOf }: DltSettings): string[] {
  const withMeter = (each: string) => {
    const { count, encoding } = segmentsOf(each)
    return [each, '', `${counted(count, 'segment')}, ${encoding}, ${counted(characters(each), 'character')}`]
  }
  const isOther = hasDlt && template && template.text !== text
  return isOther
    ? [...withMeter(text), '', 'Registered-template route (DLT):', ...withMeter(template.text)]
    : withMeter(text)
}

interface LintOptions {
  lang?: string
  registered?: string
  variableLength?: number
  json?: true
}

interface LintResult {
  readonly text: DltText
  readonly findings: readonly (Omit<DltFinding, 'fix'> & { readonly fix: string })[]
}

function variableLength(text: string): number {
  if (/^(?:3[0-9]|40)$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It must be a whole number from 30 to 40.')
}

function textsToLint(brand: DltBrand, key: string | undefined, options: LintOptions): readonly DltText[] {
  const { lang, registered } = options
  if (key !== undefined && (lang !== undefined || registered !== undefined)) return [textIn(brand, key, lang)]
  const texts = dltTexts(brand, key)
  if (texts.length === 0 && key !== undefined) throw noText(brand, key)
  return lang === undefined ? texts : texts.filter((text) => text.lang === canonicalTag(lang))
}

/** @throws OperatorError if the brand has no text in the language */
function textIn(brand: DltBrand, key: string, lang: string | undefined): DltText {
  const tag = lang && canonicalTag(lang)
  const text = dltText(brand, key, tag)
  if (text && (lang === undefined || [tag, tag?.split('-')[0]].includes(text.lang))) return text
  throw noText(brand, key, lang)
}

function noText({ slug }: DltBrand, key: string, lang?: string): OperatorError {
  return new OperatorError(
    `Brand ${slug} has no SMS text of ${key}${lang === undefined ? '' : ` in ${lang}`}. \`otpost text list ${slug}\` lists its texts.`,
  )
}

async function textSettings(env: Env): Promise<PreviewSettings> {
  const settings = new Settings(env)
  const otpTtlSeconds = settings.checked(settings.integer(codeSettings.OTP_TTL_SECONDS))
  const [{ segmentsOf }, { isTopLevelDomain }, { textBeforeCode }] = await Promise.all([
    import('../adapters/sms/segments.ts'),
    import('../adapters/sms/top-level-domains.ts'),
    import('../adapters/email/code-in-html.ts'),
  ])
  return { segmentsOf, isTopLevelDomain, textBeforeCode, otpTtlSeconds }
}

function findingRows({ text, findings }: LintResult) {
  const { brand, templateKey, lang } = text
  return findings.map((finding) => ({ brandId: brand.slug, templateKey, lang, ...finding }))
}

function listed({ text: { templateKey, lang }, findings }: LintResult): readonly string[] {
  const title = `${templateKey} ${lang} (${dltCategory(templateKey)})`
  if (findings.length === 0) return [`${title}: no findings`]
  return [
    title,
    ...findings.map(({ level, rule, message, fix }) => `  ${level.padEnd(7)}  ${rule}: ${message} ${fix}`),
  ]
}

interface TargetOptions {
  lang?: string
  email?: true
}

interface PreviewOptions extends TargetOptions {
  draft?: true
  value?: readonly string[]
}

function targeted(text: Command, name: string, description: string): Command {
  return text
    .command(name)
    .description(description)
    .argument('<slug>', slugMeaning)
    .argument('<key>', keyMeaning)
    .option('--lang <tag>', "the language of the text; the default is the brand's")
    .option('--email', 'the e-mail of a code, instead of the SMS')
}

async function textRows(brands: Brands, slug: string, areDrafts = false) {
  const brand = await requiredBrand(brands, slug)
  const { all, variables, drafts } = brand.texts
  const declared = ({ templateKey }: BrandText) => variables.get(templateKey) ?? []
  return areDrafts
    ? drafts.map(({ variables: own, ...draft }) => textRow(brand.slug, draft, own ?? declared(draft)))
    : all.map((text) => textRow(brand.slug, text, declared(text)))
}

function excerpt(text: string): string {
  const line = [...text.replaceAll('\n', ' ⏎ ')]
  return line.length > 60 ? `${line.slice(0, 59).join('')}…` : line.join('')
}
