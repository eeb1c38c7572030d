import { createReadStream } from 'node:fs'
import type { Command } from 'commander'
import type { Brands } from '../domain/brands/brand.ts'
import type { BrandText, DeclaredVariable } from '../domain/messages/brand-texts.ts'
import { OperatorError, requiredBrand } from '../domain/operator/operator.ts'
import { readVariable, removeText, setText } from '../domain/operator/texts.ts'
import {
  collect,
  commandActor,
  complain,
  type Env,
  isoTime,
  print,
  printTable,
  withContext,
} from './common.ts'

const slugMeaning = 'the brandId'
const keyMeaning = 'a template, such as LOGIN_OTP, or the key of a new template, such as TABLE_READY'

export function textCommands(program: Command, env: Env): void {
  const text = program
    .command('text')
    .description("store and test a brand's own texts, in place of the built-in ones and for new templates")
  targeted(text, 'set', 'store a text; a running server sends it from the next request on')
    .requiredOption('--file <file>', 'the text, in UTF-8; - for standard input')
    .option(
      '--var <name:type:max>',
      'a variable of a new template: its type is text, number, date, datetime or url; max is the greatest length, or the greatest number; can be repeated, and replaces all earlier variables',
      collect,
    )
    .option('--subject <subject>', 'the subject of the e-mail')
    .option('--html <file>', 'the HTML of the e-mail, in UTF-8; by default, otpost builds it from the text')
    .addHelpText(
      'after',
      `
A placeholder is {{name}}. Texts of codes have {{otp}} once, and may have {{businessName}}, {{minutes}} and, in
LOGIN_OTP_WITH_ID, {{loginId}}. Other texts have {{businessName}} and the variables of their template.
docs/texts.md has an example of each.`,
    )
    .action((slug: string, key: string, options: SetOptions) =>
      withContext(env, async (context) => {
        const { file, html, subject, var: variables } = options
        if (file === '-' && html === '-') {
          throw new OperatorError('Only one of --file and --html can be standard input.')
        }
        const stored = await setText(context.acting(await commandActor(env)), {
          ...targetOf(slug, key, options),
          text: await fileText(file),
          html: html === undefined ? null : await fileText(html),
          subject,
          variables: variables?.map(readVariable),
        })
        print(JSON.stringify(textRow(stored.brandSlug, stored.text, stored.variables)))
      }),
    )
  text
    .command('list')
    .description("list a brand's own texts")
    .argument('<slug>', slugMeaning)
    .option('--json', 'print a JSON array')
    .action((slug: string, { json }: { json?: true }) =>
      withContext(env, async ({ brands }) => {
        const rows = await textRows(brands, slug)
        if (rows.length === 0 && !json) complain('The brand has only the built-in texts.')
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
  targeted(text, 'remove', 'remove a text; the built-in text, if any, is used again').action(
    (slug: string, key: string, options: TargetOptions) =>
      withContext(env, async (context) => {
        const target = targetOf(slug, key, options)
        const { channel, lang } = await removeText(context.acting(await commandActor(env)), target)
        print(`Removed the ${channel === 'SMS' ? 'SMS' : 'e-mail'} text of ${key} in ${lang}.`)
      }),
  )
}

interface TargetOptions {
  lang?: string
  email?: true
}

interface SetOptions extends TargetOptions {
  file: string
  var?: readonly string[]
  subject?: string
  html?: string
}

function targeted(text: Command, name: string, description: string): Command {
  return text
    .command(name)
    .description(description)
    .argument('<slug>', slugMeaning)
    .argument('<key>', keyMeaning)
    .option('--lang <tag>', "the language of the text (BCP 47); the default is the brand's language")
    .option('--email', 'the e-mail of LOGIN_OTP, instead of the SMS')
}

function targetOf(brand: string, key: string, { lang, email }: TargetOptions) {
  return { brand, key, lang, channel: email ? ('EMAIL' as const) : ('SMS' as const) }
}

async function textRows(brands: Brands, slug: string) {
  const brand = await requiredBrand(brands, slug)
  const { all, variables } = brand.texts
  return all.map((text) => textRow(brand.slug, text, variables.get(text.templateKey) ?? []))
}

function textRow(brandId: string, text: BrandText, variables: readonly DeclaredVariable[]) {
  const { templateKey, channel, lang, version, updatedAt, ...parts } = text
  return { brandId, templateKey, channel, lang, version, updatedAt: isoTime(updatedAt), ...parts, variables }
}

function excerpt(text: string): string {
  const line = [...text.replaceAll('\n', ' ⏎ ')]
  return line.length > 60 ? `${line.slice(0, 59).join('')}…` : line.join('')
}

const maxBytes = 100_000

/** Without BOM and the newline with which editors end a file. @throws OperatorError */
async function fileText(file: string): Promise<string> {
  const name = file === '-' ? 'Standard input' : file
  const chunks: Uint8Array[] = []
  let bytes = 0
  try {
    for await (const chunk of file === '-' ? process.stdin : createReadStream(file)) {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes > maxBytes) throw new OperatorError(`${name} has more than ${maxBytes} bytes.`)
    }
    const text = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
    return text.replace(/\r?\n$/, '')
  } catch (error) {
    if (error instanceof OperatorError) throw error
    if (error instanceof TypeError) throw new OperatorError(`${name} is not UTF-8. Save it as UTF-8.`)
    const code = error instanceof Error && 'code' in error ? ` (${error.code})` : ''
    throw new OperatorError(`${name} cannot be read${code}.`)
  }
}
