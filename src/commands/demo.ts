import { join } from 'node:path'
import { secretsFrom } from '../adapters/crypto/secret-file.ts'
import type { Demo } from '../adapters/outbox/page.tsx'
import type { App } from '../app.ts'
import { notifyTemplateKeys } from '../domain/messages/templates.ts'
import { putBrand } from '../domain/operator/operator.ts'
import { makeLink } from '../domain/operator/sessions.ts'

/**
 * Each folder has an API key of its own. With a known key, a web site in a browser on this machine could call the API
 * (DNS rebinding).
 */
export function demoIn(folder = demoFolder): Demo {
  const [apiKey] = secretsFrom(join(folder, 'demo.apikey')).secrets
  return { appId: 'demo', apiKey, brandId: 'acme' }
}

const demoFolder = 'data'

/** The environment cannot change the database and the outbox of the demo. */
export function demoEnv(
  env: Readonly<Record<string, string | undefined>>,
  demo: Demo,
): Record<string, string | undefined> {
  return {
    HOST: '127.0.0.1',
    PORT: env.PORT,
    DATABASE_URL: `file:${join(demoFolder, 'demo.db')}`,
    APP_CREDENTIALS: JSON.stringify({ [demo.appId]: demo.apiKey }),
    LOG_LEVEL: env.LOG_LEVEL ?? 'warn',
  }
}

const operator = { by: 'command', name: 'demo' } as const

export async function prepareDemo(app: App, listen: () => URL, demo: Demo): Promise<void> {
  await putBrand(app.context.acting(operator), demo.brandId, {
    displayName: 'Acme',
    notifyTemplates: notifyTemplateKeys,
    loginIdEnabled: true,
  })
  const url = listen()
  process.stdout.write(welcome(url, await makeLink(app.context, operator), demo))
}

function welcome(url: URL, linkToken: string, demo: Demo): string {
  const base = url.origin
  const credentials = `"appId":"${demo.appId}","apiKey":"${demo.apiKey}","brandId":"${demo.brandId}"`
  const post = (path: string) => `curl -s ${base}${path} -H 'content-type: application/json' -d`
  return `
otpost is running in demo mode. All messages go to its outbox.

  Outbox page       ${base}/outbox
  API description   ${base}/docs
  Console           ${base}/admin/link#${linkToken}
                    (works once, expires in ten minutes)

Send a code, read it from the outbox, and verify it:

  ${post('/otp/send')} '{${credentials},"phone":"+1 202 555 0143"}'

  CODE=$(curl -s '${base}/outbox/messages?to=12025550143&wait=10' | grep -o '[0-9]\\{6\\} is your' | tail -1 | cut -c1-6); echo "$CODE"

  ${post('/otp/verify')} '{${credentials},"phone":"+1 202 555 0143","otp":"'"$CODE"'"}'

Press Ctrl-C to stop.

`
}
