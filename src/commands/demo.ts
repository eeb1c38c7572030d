import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Demo } from '../adapters/outbox/page.tsx'
import { isRegion } from '../adapters/phone/e164.ts'
import { markerOf } from '../adapters/sqlite/marker.ts'
import type { App } from '../app.ts'
import type { Config } from '../config/config.ts'
import { type Context, openContext } from '../context.ts'
import { makeLink } from '../domain/accounts/sessions.ts'
import { anyCountry } from '../domain/money/budgets.ts'
import { issueApp, rotateApp } from '../domain/operator/apps.ts'
import { putBrand } from '../domain/operator/brands.ts'
import { budgetSet } from '../domain/operator/money.ts'
import { notifyTemplateKeys } from '../domain/texts/templates.ts'
import type { Env } from './common.ts'

const folder = 'data'
const databaseFile = join(folder, 'demo.db')
/** The API key is in this file, so that it is the same after a restart. */
const keyFile = join(folder, 'demo.apikey')
const appId = 'demo'
const brandId = 'acme'

/** The environment cannot change the database and the outbox of the demo. */
export function demoEnv(
  env: Readonly<Record<string, string | undefined>>,
): Record<string, string | undefined> {
  return {
    HOST: '127.0.0.1',
    PORT: env.PORT,
    DATABASE_URL: `file:${databaseFile}`,
    LOG_LEVEL: env.LOG_LEVEL ?? 'warn',
    // As on a server. SMS_COUNTRIES is not set: the outbox takes messages to every country.
    GUARD: 'deny',
  }
}

const operator = { by: 'command', name: 'demo' } as const

/** The database of the demo with its brand and its app. A deleted database begins again. */
export async function prepareDemo(config: Config): Promise<Demo> {
  rmSync(markerOf(databaseFile), { force: true })
  const context = await openContext(config, { serves: true })
  try {
    await putBrand(context.acting(operator), brandId, {
      displayName: 'Acme',
      notifyTemplates: notifyTemplateKeys,
      loginIdEnabled: true,
    })
    await limitCost(context)
    return { appId, apiKey: await demoKey(context), brandId }
  } finally {
    await context.close()
  }
}

/** At the first start. */
async function limitCost({ acting, policy, ...stores }: Context): Promise<void> {
  if ((await policy.rows()).budgets.length > 0) return
  const budget = { scope: anyCountry, period: 'day', amount: '500', stops: true }
  await budgetSet.perform({ ...stores, ...acting(operator), isCountry: isRegion }, budget)
}

/**
 * Each folder has an API key of its own: with a known key, a web site in a browser on this machine could call the API (DNS
 * rebinding). A key that was revoked is replaced.
 */
async function demoKey({ apps, acting }: Context): Promise<string> {
  const known = existsSync(keyFile) ? readFileSync(keyFile, 'utf8').trim() : ''
  if (known !== '' && (await apps.accepts(appId, known))) return known
  const app = (await apps.list()).find((each) => each.appId === appId)
  const hasKey = app !== undefined && app.revokedAt === null
  const key = hasKey
    ? await rotateApp(acting(operator), appId)
    : (await issueApp(acting(operator), appId)).key
  mkdirSync(dirname(keyFile), { recursive: true, mode: 0o700 })
  rmSync(keyFile, { force: true })
  writeFileSync(keyFile, `${key}\n`, { mode: 0o600 })
  return key
}

/** Prints how to use the demo once the server listens. */
export async function showDemo({ context }: App, listen: () => URL, demo: Demo, env: Env): Promise<void> {
  const url = listen()
  process.stdout.write(welcome(url, await makeLink(context, operator), demo, programName(env)))
}

function welcome(url: URL, linkToken: string, demo: Demo, program: string): string {
  const base = url.origin
  // Commands print the URL of the server.
  const port = url.port === '3000' ? '' : ` PORT=${url.port}`
  const command = `DATABASE_URL='file:${resolve(databaseFile)}'${port} ${program}`
  const post = (path: string) =>
    `curl -s -u '${demo.appId}:${demo.apiKey}' ${base}${path} -H 'content-type: application/json' -d`
  return `
otpost is running in demo mode. All messages go to its outbox.

  Outbox page       ${base}/outbox
  API description   ${base}/docs
  Console           ${base}/admin/link#${linkToken}
                    (works once, expires in ten minutes)
  Commands          ${command} app list

Send a code, read it from the outbox, and verify it:

  ${post('/otp/send')} '{"brandId":"${demo.brandId}","phone":"+1 202 555 0143"}'

  CODE=$(curl -s '${base}/outbox/messages?to=12025550143&wait=10' | grep -o '[0-9]\\{6\\} is your' | tail -1 | cut -c1-6); echo "$CODE"

  ${post('/otp/verify')} '{"brandId":"${demo.brandId}","phone":"+1 202 555 0143","otp":"'"$CODE"'"}'

As on a server, the SMS pumping guard denies codes of which too many are not verified, with 429. In another terminal:

  ${command} guard mode record

Press Ctrl-C to stop.

`
}

/** How the reader of the checkout, of the binary or of the npm package calls otpost. */
function programName(env: Env): string {
  const isNpx = env.npm_config_user_agent?.startsWith('npm/') ?? false
  if (Bun.isStandaloneExecutable || Bun.main.endsWith('.js')) return isNpx ? 'npx otpost' : 'otpost'
  return isNpx ? `npx -y bun@${Bun.version} run otpost` : 'bun run otpost'
}
