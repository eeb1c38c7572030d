import { type Command, InvalidArgumentError } from 'commander'
import { issueApp } from '../domain/operator/apps.ts'
import { freshBrand, putBrand } from '../domain/operator/brands.ts'
import { setWebhook } from '../domain/operator/webhooks.ts'
import { brandProblems, nameKey } from '../domain/texts/brand.ts'
import { notifyTemplateKeys } from '../domain/texts/templates.ts'
import { type Env, list, print, several } from './common.ts'
import { type PortOptions, portOption, serve, withPort } from './serve.ts'

/** The key is not a secret: the sandbox sends nothing. */
const application = { appId: 'sandbox', apiKey: 'otp_sandbox_key' } as const

/** The settings that apply in a sandbox, and their values where they differ from those of a server. */
export const sandboxSettings: Readonly<Record<string, string | undefined>> = {
  PORT: '0',
  LOG_LEVEL: 'warn',
  // The default of ten would stop a test suite after a few logins.
  GLOBAL_LIMIT_PER_MINUTE: '100000',
  PHONE_LIMIT_PER_MINUTE: undefined,
  PHONE_LIMIT_PER_HOUR: undefined,
  SMS_COOLDOWN_SECONDS: undefined,
  OTP_TTL_SECONDS: undefined,
  EMAIL_LIMIT_PER_HOUR: undefined,
  FAILURE_BUDGET_PER_DAY: undefined,
  PHONE_DEFAULT_REGION: undefined,
}

const help = `
When the server listens, it prints one line of JSON:
{"url":"http://127.0.0.1:41234","appId":"${application.appId}","apiKey":"${application.apiKey}","brandIds":["acme"],
"outboxUrl":"http://127.0.0.1:41234/outbox"}

With --webhook, the line has webhookSecret too. Each brand has every template enabled. outboxUrl shows messages as
a page, outboxUrl/messages?to=RECIPIENT&wait=SECONDS as JSON. Nothing is stored or sent.

The sandbox reads only these settings:
${Object.entries(sandboxSettings)
  .map(([name, usual]) => (usual === undefined ? `  ${name}` : `  ${name}=${usual}`))
  .join('\n')}`

export function sandboxCommands(program: Command, env: Env): void {
  program
    .command('sandbox')
    .description(
      'start a server for tests, with a free port, a database in memory and messages in the outbox',
    )
    .option('--brand <slug>', `a brand to create; ${several} (default: acme)`, collectBrand)
    .option('--webhook <url>', 'the URL that receives the events of the app')
    .option('--until-stdin-closes', 'also stop when standard input closes')
    .addOption(portOption())
    .addHelpText('after', help)
    .action(async ({ brand = ['acme'], webhook: webhookUrl, untilStdinCloses, port }: SandboxOptions) => {
      const [{ readConfig }, { sha256 }] = await Promise.all([
        import('../config/config.ts'),
        import('../adapters/crypto/secrets.ts'),
      ])
      const { appId, apiKey: key } = application
      const newApiKey = () => ({ key, sha256: sha256(key), lastFour: key.slice(-4) })
      const brandIds = [...new Set(brand)]
      const config = readConfig(sandboxEnv(withPort(env, { port })))
      await serve(config, {
        demo: { ...application, brandId: brandIds[0] ?? '' },
        logFd: 2,
        ...(untilStdinCloses ? { until: inputEnds } : {}),
        prepare: async ({ context }, listen) => {
          const ports = context.acting({ by: 'command', name: 'sandbox' })
          for (const slug of brandIds) await putBrand(ports, slug, brandOf(slug))
          await issueApp({ ...ports, secrets: { newApiKey } }, appId)
          const webhook =
            webhookUrl === undefined
              ? undefined
              : await setWebhook(
                  { ...ports, apps: context.apps, isProduction: false, hostKind: config.hostKind },
                  appId,
                  webhookUrl,
                  undefined,
                )
          const url = listen().origin
          const webhookSecret = webhook?.webhook.secret
          print(JSON.stringify({ url, ...application, brandIds, outboxUrl: `${url}/outbox`, webhookSecret }))
        },
      })
    })
}

interface SandboxOptions extends PortOptions {
  brand?: readonly string[]
  webhook?: string
  untilStdinCloses?: true
}

/** Without settings that send, store or report anything. */
function sandboxEnv(env: Env): Env {
  const said = Object.entries(sandboxSettings).map(([name, usual]) => [name, env[name]?.trim() || usual])
  return {
    ...Object.fromEntries(said),
    HOST: '127.0.0.1',
    DATABASE_URL: 'file::memory:',
  }
}

/** `my-shop` becomes My Shop. */
function brandOf(slug: string) {
  const words = slug.split('-').filter((word) => word !== '')
  const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join(' ')
  return {
    displayName: name.slice(0, 40).trim(),
    notifyTemplates: notifyTemplateKeys,
    loginIdEnabled: true,
  }
}

function collectBrand(text: string, before: readonly string[] = []): readonly string[] {
  const slugs = list(text).map(nameKey)
  const problems = slugs.flatMap((slug) => brandProblems({ ...freshBrand(slug), ...brandOf(slug) }))
  if (slugs.length === 0 || problems.length > 0) throw new InvalidArgumentError(problems.join(' '))
  return [...before, ...slugs]
}

function inputEnds(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  process.stdin.on('end', resolve).on('close', resolve).on('error', resolve).resume()
  return promise
}
