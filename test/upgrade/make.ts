import { createHmac } from 'node:crypto'
import { chmodSync, copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { codeIn, otherThan } from '../support/app.ts'
import type { Facts, Lived } from './fixtures.ts'

// Creates a database of a version of otpost with the server and commands of that version, and stores the file and the
// facts about it here: bun test/upgrade/make.ts [CHECKOUT [COMMIT]].

const [checkout = join(import.meta.dir, '../..'), commit] = process.argv.slice(2)
const root = resolve(checkout)
const folder = mkdtempSync(join(tmpdir(), 'otpost-made-'))
const file = join(folder, 'otpost.db')

/** Used for these databases alone. */
const secretKey = 'the secret of a database that is only a test'
const webhookSecret = Buffer.from('a webhook secret of a test, 32 b')

const env = {
  PATH: process.env.PATH ?? '',
  HOME: process.env.HOME ?? '',
  // The operator in the audit log.
  SUDO_USER: 'operator',
  DATABASE_URL: `file:${file}`,
  SECRET_KEY: secretKey,
  PORT: '0',
  GLOBAL_LIMIT_PER_MINUTE: '1000',
}

/** The output of a command of that version; undefined if that version has no such command. */
async function command(...args: string[]): Promise<string | undefined> {
  const child = Bun.spawn([process.execPath, 'src/main.ts', ...args], {
    cwd: root,
    env,
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  if (code === 0) return out.trim()
  if (/unknown (command|option)/.test(err)) return undefined
  throw new Error(`otpost ${args.join(' ')} ended with ${code}: ${err}`)
}

async function required(...args: string[]): Promise<string> {
  const out = await command(...args)
  if (out === undefined) throw new Error(`this version has no otpost ${args.join(' ')}`)
  return out
}

/** Runs the server of that version during an action, and stops it cleanly. */
async function serving(
  settings: Record<string, string>,
  work: (url: string) => Promise<void>,
): Promise<void> {
  const child = Bun.spawn([process.execPath, 'src/main.ts', 'serve'], {
    cwd: root,
    env: { ...env, ...settings },
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const listening = Promise.withResolvers<string>()
  const reading = (async () => {
    const decoder = new TextDecoder()
    let text = ''
    for await (const chunk of child.stdout) {
      text += decoder.decode(chunk, { stream: true })
      const url = /"url":"(http:[^"]+)","[^\n]*"msg":"listening"/.exec(text)?.[1]
      if (url) listening.resolve(url)
    }
    listening.reject(new Error(`the server has ended: ${text}`))
  })()
  await work(await listening.promise)
  child.kill('SIGTERM')
  if ((await child.exited) !== 0) throw new Error('the server did not stop in good order')
  await reading
}

const appId = 'shop'
await required('brand', 'put', 'acme', '--name', 'Acme & Söhne', '--notify', 'ORDER_PLACED,OUT_FOR_DELIVERY')
await required('brand', 'put', 'acme', '--dlt', '--login-id', '--domain', 'shop.acme.example')
await required('brand', 'put', 'globex', '--name', 'Globex', '--status', 'pending')
await required('brand', 'put', 'umbrella', '--name', 'Umbrella')
await required('brand', 'status', 'umbrella', 'suspended')
await command('brand', 'put', 'acme', '--entity', '1101000000000000042')
await command('brand', 'template', 'acme', 'LOGIN_OTP', '--id', '1107160000000000042', '--sender', 'ACMEIN')
const apiKey = await required('app', 'issue', appId)
const revokedApiKey = await required('app', 'issue', 'former')
await required('app', 'revoke', 'former')
const secondApiKey = await command('app', 'rotate', appId)

/** A POST as the shop; fails at another status. */
async function post(url: string, path: string, fields: object, status: number) {
  const response = await fetch(new URL(path, url), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ appId, apiKey, brandId: 'acme', ...fields }),
  })
  const body = await response.json()
  if (response.status !== status)
    throw new Error(`${path} answered ${response.status} ${JSON.stringify(body)}`)
  return body
}

/** Sends a code and reads it from the outbox. */
async function send(url: string, to: { phone: string } | { email: string }): Promise<string> {
  const [recipient, channel] = 'phone' in to ? [to.phone, 'SMS'] : [to.email, 'EMAIL']
  await post(url, '/otp/send', { channel, ...to }, 200)
  const answer = await fetch(new URL(`/outbox/messages?to=${encodeURIComponent(recipient)}`, url))
  return codeIn((await answer.json()).messages.at(-1)?.text)
}

const lived: Partial<Record<Lived, { phone: string; otp: string }>> = {}
let mail: Facts['mail'] | undefined
let integrationRequestId = ''

// Without a cooldown, so that one number gets three codes in its minute.
await serving({ SMS_COOLDOWN_SECONDS: '0' }, async (url) => {
  const code = async (name: Lived, phone: string) => {
    const otp = await send(url, { phone })
    lived[name] = { phone, otp }
    return { phone, otp }
  }
  await code('live', '12025550101')
  const guessed = await code('guessed', '12025550102')
  await post(url, '/otp/verify', { ...guessed, otp: otherThan(guessed.otp) }, 401)
  const locked = await code('locked', '12025550103')
  for (let guess = 0; guess < 3; guess++) {
    await post(url, '/otp/verify', { ...locked, otp: otherThan(locked.otp) }, 401)
  }
  await post(url, '/otp/verify', locked, 429)
  await post(url, '/otp/verify', await code('used', '12025550104'), 200)
  for (let time = 0; time < 3; time++) await code('busy', '12025550105')
  await post(url, '/otp/send', { phone: '12025550105' }, 429)
  const email = 'jane@example.com'
  mail = { email, otp: await send(url, { email }) }
  const variables = { customerName: 'Jo', orderId: 'A-1', orderDate: '2026-11-21' }
  await post(
    url,
    '/notify',
    { channel: 'SMS', to: ['12025550106'], templateKey: 'ORDER_PLACED', variables },
    200,
  )
  await post(
    url,
    '/notify',
    {
      channel: 'EMAIL',
      to: ['jane@example.com', 'joe@example.com'],
      subject: 'Shipped',
      html: '<p>Shipped</p>',
    },
    200,
  )
  const asked = { companyName: 'Globex Ltd', contactName: 'Jo Doe', contactEmail: 'jo@globex.example' }
  await post(url, '/integrations/requests', { ...asked, brandName: 'Globex Two' }, 201)
  const second = await post(url, '/integrations/requests', { ...asked, brandName: 'Initech' }, 201)
  integrationRequestId = second.integrationRequestId
})

const approvedApiKey = await command(
  'request',
  'approve',
  integrationRequestId,
  '--app',
  'till',
  '--brand',
  'initech',
)
await command('admin', 'link')

// A provider that accepts one message and rejects the next, and sends a delivery report on the first.
const double = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch: async (request) => {
    const { to, id } = (await request.json()) as { to: string; id: string }
    if (to === '12025550107') handedOver = id
    return new Response(null, { status: to === '12025550107' ? 200 : 500 })
  },
})
let handedOver = ''
const webhook = {
  SMS_PLAIN: 'webhook',
  SMS_TEMPLATE: 'webhook',
  SMS_WEBHOOK_URL: `http://127.0.0.1:${double.port}`,
  SMS_WEBHOOK_SECRET: webhookSecret.toString('base64'),
  PUBLIC_URL: 'http://127.0.0.1',
}
await serving(webhook, async (url) => {
  const message = 'Your order is on its way.'
  await post(url, '/notify', { channel: 'SMS', to: ['12025550107'], message }, 200)
  await post(url, '/notify', { channel: 'SMS', to: ['12025550108'], message }, 500)
  Object.assign(env, webhook)
  const deliveryReports = await command('receipts')
  const path = /\/receipts\/webhook\/\S+/.exec(deliveryReports ?? '')?.[0]
  if (path === undefined) return
  const [id, at] = ['msg_1', String(Math.floor(Date.now() / 1000))]
  const body = JSON.stringify({ id: handedOver, status: 'delivered' })
  const signature = createHmac('sha256', webhookSecret).update(`${id}.${at}.${body}`).digest('base64')
  const answer = await fetch(new URL(path, url), {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': at,
      'webhook-signature': `v1,${signature}`,
    },
    body,
  })
  if (!answer.ok) throw new Error(`the delivery report was answered ${answer.status}`)
})
await double.stop(true)
for (const name of Object.keys(webhook)) delete (env as Record<string, string>)[name]

await serving({}, async (url) => {
  lived.cooling = { phone: '12025550109', otp: await send(url, { phone: '12025550109' }) }
})

const madeAt = Date.now()
const eventLog = JSON.parse(readFileSync(join(root, 'drizzle/sqlite/meta/_journal.json'), 'utf8'))
const schema: string = eventLog.entries.at(-1).tag
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
if (!mail) throw new Error('no mail was sent')
const facts: Facts = {
  schema,
  version,
  ...(commit ? { commit } : {}),
  madeAt,
  secretKey,
  app: { appId, apiKey, ...(secondApiKey ? { secondApiKey } : {}) },
  revokedApp: { appId: 'former', apiKey: revokedApiKey },
  ...(approvedApiKey ? { approvedApp: { appId: 'till', apiKey: approvedApiKey, brandId: 'initech' } } : {}),
  codes: lived as Facts['codes'],
  mail,
  brands: JSON.parse(await required('brand', 'list', '--json')),
  hasEventLog: (await command('deliveries')) !== undefined,
}

const left = readdirSync(folder)
if (left.join() !== 'otpost.db') throw new Error(`the last server left ${left.join(', ')}`)
const kept = join(import.meta.dir, `${schema}.db`)
copyFileSync(file, kept)
chmodSync(kept, 0o644)
await Bun.write(join(import.meta.dir, `${schema}.json`), `${JSON.stringify(facts, null, 2)}\n`)
rmSync(folder, { recursive: true })
process.stdout.write(`test/upgrade/${schema}.db, ${Bun.file(kept).size} bytes\n`)
