import { type Command, Option } from 'commander'
import { canonicalTag } from '../domain/ground/languages.ts'
import { InvalidInput } from '../domain/ground/operator-error.ts'
import {
  type BrandChange,
  brandGroup,
  brandStatus,
  putBrand,
  registerTemplate,
} from '../domain/operator/brands.ts'
import {
  type Brand,
  brandStatuses,
  registrationOf,
  type TemplateRegistration,
} from '../domain/texts/brand.ts'
import { registrationKeyOf } from '../domain/texts/brand-texts.ts'
import { groupCommand } from './actions.ts'
import { commandActor, type Env, list, print, printTable, several, withContext, yesNo } from './common.ts'

export function brandCommands(program: Command, env: Env): void {
  const brand = groupCommand(program, brandGroup)
  brand
    .command('put')
    .description(
      'create a brand, or change the given properties of an existing brand; a new brand is active unless --status is given',
    )
    .argument('<slug>', 'the brandId in API requests')
    .option('--name <name>', 'the display name in messages')
    .addOption(new Option('--status <status>', 'the status').choices(brandStatuses))
    .option('--notify <keys>', `the templates enabled on /notify; ${several}; "" for none`, list)
    .option('--dlt', 'use the registered-template (DLT) route to Indian numbers, depending on OTP_SMS_MODE')
    .option('--no-dlt', 'use the direct route only')
    .option('--login-id', 'include the loginId of the request in OTP messages')
    .option('--no-login-id', 'omit the loginId')
    .option(
      '--domain <host>',
      'the web site on which browsers fill in the code; OTP messages end with a line for it (WebOTP)',
    )
    .option('--no-domain', 'remove that web site')
    .option('--entity <id>', 'the principal entity id for the registered-template route (India: DLT)')
    .option('--no-entity', 'remove the principal entity id')
    .option('--lang <tag>', 'the language of its texts (BCP 47), such as hi; a new brand has en')
    .option(
      '--android-hash <hash>',
      'the app hash with which Android finds the SMS of its app (SMS Retriever)',
    )
    .option('--no-android-hash', 'remove the app hash')
    .option('--logo <url>', 'an image at the top of its e-mails; an https URL')
    .option('--no-logo', 'remove the image')
    .option('--color <color>', 'the color of its e-mails, such as #0b57d0')
    .option('--no-color', 'remove the color')
    .option(
      '--dlt-allow <list>',
      `the URLs and phone numbers that the principal entity has registered (DLT); ${several}; "" for none`,
      list,
    )
    .action((slug: string, options: BrandOptions) =>
      withContext(env, async (context) => {
        const ports = context.acting(await commandActor(env))
        print(JSON.stringify(brandRow(await putBrand(ports, slug, changeOf(options)))))
      }),
    )
  brand
    .command('list')
    .description('list the brands')
    .option('--json', 'print a JSON array')
    .action((options: { json?: true }) =>
      withContext(env, async ({ brands }) =>
        printTable(options.json, (await brands.list()).map(brandRow), [
          ['BRAND', (row) => row.brandId],
          ['STATUS', (row) => row.status],
          ['NAME', (row) => row.displayName],
          ['NOTIFY', (row) => row.notifyTemplates.join(',') || '-'],
          ['DLT', (row) => yesNo(row.dltEnabled)],
          ['LOGIN-ID', (row) => yesNo(row.loginIdEnabled)],
          ['DOMAIN', (row) => row.domain ?? '-'],
        ]),
      ),
    )
  brand
    .command('template')
    .description('store the ids under which a template is registered with carriers and providers')
    .argument('<slug>', 'the brandId')
    .argument('<key>', 'the template: a built-in one, or one of the brand')
    .option(
      '--lang <tag>',
      'the registration of the text in this language; default: the language of the brand',
    )
    .option(
      '--id <id>',
      `the id of the registered template; PROVIDER=ID for the id at one provider; ${several}`,
      list,
      [],
    )
    .option('--sender <sender>', 'the sender id (header) of the registration')
    .option(
      '--max-length <characters>',
      'the greatest length of a value in the registered text, 30 to 40; a registration without it has 30',
      Number,
    )
    .option('--remove', 'remove the registration')
    .action((slug: string, template: string, options: TemplateOptions) =>
      withContext(env, async (context) => {
        const ports = context.acting(await commandActor(env))
        const { catalogOf } = await import('../config/providers.ts')
        const { lang } = options
        const key = registrationKeyOf(template, lang && (canonicalTag(lang) ?? lang))
        const changed = await registerTemplate(
          ports,
          slug,
          key,
          registrationChange(options, catalogOf(env).names),
        )
        print(JSON.stringify({ brandId: changed.slug, key, ...registrationOf(changed, key) }))
      }),
    )
}

interface TemplateOptions {
  id: readonly string[]
  lang?: string
  sender?: string
  maxLength?: number
  remove?: true
}

/** Null removes the registration. */
function registrationChange(
  { id, sender, maxLength, remove }: TemplateOptions,
  providers: readonly string[],
): Partial<TemplateRegistration> | null {
  const says = id.length > 0 || sender !== undefined || maxLength !== undefined
  if (remove && says)
    throw new InvalidInput('--remove cannot be combined with --id, --sender or --max-length.')
  if (remove) return null
  if (!says) throw new InvalidInput('Nothing to change. Give --id, --sender, --max-length or --remove.')
  const ids: Record<string, string> = {}
  let own: string | undefined
  for (const each of id) {
    const [, provider, providersId = ''] = /^([^=]*)=(.*)$/.exec(each) ?? []
    const known = provider === undefined ? own : ids[provider]
    if (known !== undefined)
      throw new InvalidInput(`--id is given twice${provider ? ` for ${provider}` : ''}.`)
    if (provider === undefined) own = each
    else if (providers.includes(provider)) ids[provider] = providersId
    else throw new InvalidInput(`Unknown provider ${provider}. The providers are ${providers.join(', ')}.`)
  }
  return {
    ids,
    ...(own === undefined ? {} : { id: own }),
    ...(sender === undefined ? {} : { senderId: sender }),
    ...(maxLength === undefined ? {} : { maxLength }),
  }
}

interface BrandOptions {
  name?: string
  status?: string
  notify?: readonly string[]
  dlt?: boolean
  loginId?: boolean
  domain?: string | false
  entity?: string | false
  lang?: string
  androidHash?: string | false
  logo?: string | false
  color?: string | false
  dltAllow?: readonly string[]
}

function changeOf(options: BrandOptions): BrandChange {
  const { name, status, notify, dlt, loginId, domain, entity, lang, androidHash, logo, color, dltAllow } =
    options
  return {
    displayName: name,
    status: status === undefined ? undefined : brandStatus(status),
    notifyTemplates: notify,
    dltEnabled: dlt,
    loginIdEnabled: loginId,
    domain: domain === false ? null : domain,
    entityId: entity === false ? null : entity,
    lang,
    androidHash: androidHash === false ? null : androidHash,
    logoUrl: logo === false ? null : logo,
    color: color === false ? null : color,
    dltAllowList: dltAllow,
  }
}

function brandRow({ slug, texts: _, ...brand }: Brand & { readonly texts?: unknown }) {
  return { brandId: slug, ...brand }
}
