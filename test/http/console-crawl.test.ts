import { afterAll, beforeAll, describe, expect } from 'bun:test'
import { issueApp } from '../../src/domain/operator/apps.ts'
import { putBrand } from '../../src/domain/operator/brands.ts'
import { readVariable } from '../../src/domain/operator/texts.ts'
import { addAccount, enterAs } from '../support/accounts.ts'
import { createTestApp, credentials, type TestApp } from '../support/app.ts'
import { accessRequest } from '../support/calls.ts'
import type { Visitor } from '../support/console.ts'
import { sqliteOnly, store } from '../support/database.ts'
import { operate, setText, tester } from '../support/operator.ts'
import { policyOf } from '../support/policy.ts'

// Opens every page of the console that a link leads to, while every stored text is hostile.

/** Text that, unescaped, breaks out of an element, a quoted attribute or a comment. */
const markup = `--></title></textarea><script>alert(1)</script>"'><img src=x onerror="alert(2)" style="color:red">?bcc=a@evil.example&`

const hostileTexts = {
  markup,
  'a direction override': '\u202eevil\u2066\u200b',
  'very long text': 'long'.repeat(5000),
  nothing: '',
} as const

/** Stored texts that no rule of the database limits, by table. */
const texts: Readonly<Record<string, readonly string[]>> = {
  alerts: ['title'],
  app_keys: ['last_four'],
  attempts: ['app', 'brand', 'recipient', 'provider', 'template', 'reason', 'provider_message_id', 'lang'],
  audit: ['name', 'target'],
  brands: ['display_name', 'domain', 'entity_id', 'lang', 'android_hash', 'logo_url', 'link_url', 'color'],
  console_sessions: ['client_ip', 'device'],
  delivery_reports: ['reason'],
  destination_rules: ['sender'],
  events: ['brand', 'recipient', 'reference', 'reason', 'error'],
  integration_requests: [
    ...['company_name', 'contact_name', 'contact_email', 'brand_name', 'use_case'],
    ...['decided_by', 'reason', 'app_id', 'brand_slug'],
  ],
  notify_jobs: ['masked', 'reason'],
  outbox: ['brand_name', 'subject', 'text', 'html'],
  passkeys: ['name', 'transports'],
  requests: [
    ...['app', 'brand', 'recipient', 'message', 'reference', 'provider', 'template', 'reason'],
    ...['provider_message_id', 'lang'],
  ],
  review_numbers: ['masked'],
  texts: ['subject', 'text', 'html'],
}

const phone = '12025550143'
const strangeAppId = `"><script>alert(3)</script>'&amp;`
const asked = { ...accessRequest, useCase: 'Logging in.' }

let app: TestApp
let visitor: Visitor
/** What no page may have. */
let secrets: readonly string[]

beforeAll(async () => {
  if (store !== 'sqlite') return
  app = await createTestApp({ PUBLIC_URL: 'https://otp.example.com', GUARD: 'record' })
  const ports = app.app.context.acting(tester)
  await putBrand(ports, 'acme', { dltEnabled: true, loginIdEnabled: true, notifyTemplates: ['ORDER_PLACED'] })
  const registered = { ids: ['1107', 'msg91=65a'], senderId: 'ACMEIN' }
  await operate(app, 'brand template', { slug: 'acme', key: 'LOGIN_OTP', ...registered })
  const text = { brand: 'acme', key: 'LOGIN_OTP', text: '{{otp}}', lang: 'hi' } as const
  await setText(ports, { ...text, channel: 'SMS' })
  await setText(ports, { ...text, channel: 'EMAIL', subject: 'Code' })
  const variables = [readVariable('guest:text:30')]
  await setText(ports, { brand: 'acme', key: 'TABLE_READY', channel: 'SMS', text: 'Hi {{guest}}', variables })
  const { key } = await issueApp(ports, strangeAppId)
  await operate(app, 'guard block', { prefix: '+3712000' })
  const policy = policyOf(app)
  await policy.rule('GB', 'monitor', { sender: 'Acme' })
  await policy.budget('brand:acme', '0.000001')
  await policy.webhook('http://localhost:3002/events?token=secret-of-the-webhook')
  for (const companyName of ['Globex', 'Initech', 'Hooli'])
    await app.postRaw('/integrations/requests', { ...asked, companyName, website: 'https://globex.example/' })
  const sent = await app.post('/otp/send', { phone, reference: 'order 17' })
  await app.post('/otp/send', { phone })
  await app.post('/otp/verify', { phone, otp: '000000' })
  const later = { channel: 'SMS', brandId: 'acme', to: [phone, '447400123499'], message: 'Hi', async: true }
  await app.eventsOf(await app.post('/notify', later))
  await app.eventsOf(sent)
  const owner = await addAccount(app, 'owner@example.com', 'owner')
  visitor = await enterAs(app, owner)
  await addAccount(app, 'other@example.com', 'viewer')
  await app.database.query(
    `UPDATE integration_requests SET website = 'javascript:alert(4)' WHERE company_name = 'Globex'`,
  )
  await app.database.query(
    `UPDATE integration_requests SET status = 'approved', decided_at = created_at WHERE company_name = 'Hooli'`,
  )
  const [{ password_hash: hash, totp_secret: totp } = {}] =
    await app.database.query('SELECT * FROM operators')
  secrets = [
    ...[key, credentials.apiKey, String(hash), String(totp), 'secret-of-the-webhook', phone, '447400123499'],
    ...visitor.cookies.values(),
  ]
})
afterAll(() => app?.close())

/** The elements of a page with their attributes, as HTMLRewriter parses them. */
function elementsOf(html: string) {
  const elements: { readonly tag: string; readonly attributes: ReadonlyMap<string, string> }[] = []
  const element = ({ tagName, attributes }: HTMLRewriterTypes.Element) =>
    void elements.push({ tag: tagName, attributes: new Map(attributes as Iterable<[string, string]>) })
  new HTMLRewriter().on('*', { element }).transform(html)
  const all = (tag: string) => elements.filter((each) => each.tag === tag).map(({ attributes }) => attributes)
  return { elements, all }
}

/** What is wrong with a page: markup that its content security policy forbids, secrets, controls without a label. */
function problemsOf(html: string): readonly string[] {
  const { elements, all } = elementsOf(html)
  const problems: string[] = []
  const check = (isRight: unknown, problem: string) => void (isRight || problems.push(problem))
  for (const tag of ['title', 'main', 'h1']) check(all(tag).length === 1, `${all(tag).length} ${tag}`)
  for (const tag of ['style', 'img', 'object', 'embed', 'base'])
    check(all(tag).length === 0, `an element ${tag}`)
  for (const { attributes } of elements)
    for (const name of attributes.keys()) check(!/^(?:style|srcdoc|on.*)$/.test(name), `an attribute ${name}`)
  for (const script of all('script')) check(script.get('src')?.startsWith('/admin/'), 'a script of its own')
  check(!/<script[^>]*>[^<]/.test(html), 'an inline script')
  for (const link of all('a')) {
    const href = link.get('href') ?? ''
    check(/^(?:\/[a-z]|#|https?:\/\/|mailto:[^?]*$|otpauth:)/.test(href), `a link to ${href}`)
    check(
      !href.startsWith('http') || link.get('rel')?.includes('noopener'),
      `a link without noopener: ${href}`,
    )
  }
  for (const form of html.match(/<form .*?<\/form>/gs) ?? []) {
    const [, attributes = ''] = /^<form ([^>]*)>/.exec(form) ?? []
    check(
      /method="(?:get|post)"/.test(attributes) && /action="\/admin[/"]/.test(attributes),
      `a form ${attributes}`,
    )
    check(
      !/method="post"/.test(attributes) || /name="csrf" value="[^"]{43}"/.test(form),
      `no token: ${attributes}`,
    )
  }
  const labelled = new Set(all('label').map((label) => label.get('for')))
  const controls = [...all('input'), ...all('textarea'), ...all('select')]
  for (const control of controls) {
    const isVisible = control.get('type') !== 'hidden' && !control.has('hidden')
    check(!isVisible || labelled.has(control.get('id')), `no label: ${control.get('name')}`)
  }
  const ids = elements.flatMap(({ attributes }) => attributes.get('id') ?? [])
  check(new Set(ids).size === ids.length, `an id twice: ${ids.filter((id, at) => ids.indexOf(id) !== at)}`)
  for (const secret of secrets) check(!html.includes(secret), `the secret ${secret.slice(0, 4)}…`)
  return problems
}

const decoded = (text: string) =>
  text.replaceAll('&amp;', '&').replaceAll('&quot;', '"').replaceAll('&#39;', "'")

/** Pages of one kind are visited once: those that differ in an ID, a provider or the value of a filter. */
const kindOf = (path: string) => {
  const { pathname, searchParams } = new URL(path, 'http://localhost')
  const kind = pathname.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/, ':id').replace(/(providers\/)[^/]+/, '$1:name')
  return `${kind}?${[...new Set(searchParams.keys())].sort()}`
}

/**
 * Opens every page that links lead to. Resolves to their HTML by path, and to what is wrong with any of them.
 * What a hostile text names does not exist.
 */
async function crawl(text: string) {
  const pages = new Map<string, string>()
  const isNamed = (path: string) =>
    text === '' ? /[/-]$/.test(path) : decodeURIComponent(decodeURIComponent(path)).includes(text)
  const problems: string[] = []
  const waiting = ['/admin', '/admin/search', '/admin/nothing-is-here']
  const known = new Set(waiting.map(kindOf))
  const anchors: (readonly [from: string, path: string, anchor: string])[] = []
  for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
    const { status, html, headers } = await visitor.get(path)
    const isHere = path !== '/admin/nothing-is-here' && !isNamed(path)
    const expected = isHere ? 200 : 404
    if (status !== expected && !(status === 303 && headers.get('location')?.startsWith('/admin')))
      problems.push(`${path}: ${status}`)
    const policy = headers.get('content-security-policy') ?? ''
    const isStrict = ["default-src 'none'", "frame-ancestors 'none'"].every((each) => policy.includes(each))
    if (!isStrict || policy.includes('unsafe')) problems.push(`${path}: the policy ${policy}`)
    if (headers.get('cache-control') !== 'no-store') problems.push(`${path}: may be cached`)
    if (headers.get('x-content-type-options') !== 'nosniff') problems.push(`${path}: without nosniff`)
    if (!headers.get('content-type')?.includes('html') || status === 303) continue
    pages.set(path, html)
    problems.push(...problemsOf(html).map((problem) => `${path}: ${problem}`))
    for (const [, href = ''] of html.matchAll(/<a [^>]*?href="([^"]*)"/g)) {
      const [target = '', anchor] = decoded(href).split('#')
      if (anchor && !isNamed(decoded(href))) anchors.push([path, target || path, anchor])
      if (!/^\/admin\b/.test(target) || known.has(kindOf(target))) continue
      known.add(kindOf(target))
      waiting.push(target)
    }
  }
  for (const [from, path, anchor] of anchors) {
    const page = pages.get(path)
    if (
      page !== undefined &&
      !elementsOf(page).elements.some(
        ({ attributes }) => decoded(attributes.get('id') ?? '') === decodeURIComponent(anchor),
      )
    )
      problems.push(`${from}: no ${path}#${anchor}`)
  }
  return { pages, problems }
}

/** Answers to forms that are no page of their own. */
const answers: Readonly<Record<string, () => Promise<{ html: string }>>> = {
  'a key': () => visitor.post('/admin/apps/issue', { appId: `<b>${crypto.randomUUID().slice(0, 8)}</b>"'` }),
  'a rejected app': () => visitor.post('/admin/apps/issue', { appId: markup }),
  'a rejected invitation': () => visitor.post('/admin/operators', { email: markup, role: markup }),
  'a rejected brand': () =>
    visitor.post('/admin/brands', { slug: markup, displayName: markup, color: markup, mustBeNew: '1' }),
  'a rejected rule': () =>
    visitor.post('/admin/destinations', { rule: markup, action: 'block', sender: markup }),
  'a rejected budget': () => visitor.post('/admin/money', { scope: markup, period: 'day', amount: markup }),
  'a rejected test': () => visitor.post('/admin/test', { to: markup, brand: markup, template: markup }),
  'a search': () => visitor.post('/admin/search', { q: markup }),
}

describe('the pages of the console', () => {
  for (const [name, text] of Object.entries(hostileTexts))
    sqliteOnly(`are whole and inert, and have no secret, with ${name} in every stored text`, async () => {
      for (const [table, columns] of Object.entries(texts)) {
        const quoted = `'${text.replaceAll("'", "''")}'`
        await app.database.query(
          `UPDATE ${table} SET ${columns.map((column) => `${column} = ${quoted}`).join()}`,
        )
      }
      const json = JSON.stringify({ [text]: text }).replaceAll("'", "''")
      await app.database.query(`UPDATE audit SET details = '${json}'`)
      await app.database.query(`UPDATE alerts SET text = '${json}'`)
      // Makes the server read again what operators set.
      await policyOf(app).lift('brand:acme', '1h')
      const { pages, problems } = await crawl(text)
      expect(problems).toEqual([])
      expect(pages.size).toBeGreaterThan(40)
      if (text !== markup) return
      const escaped = markup.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
      const shown = [...pages].filter(([, html]) => html.includes(escaped)).map(([path]) => kindOf(path))
      expect(shown.length).toBeGreaterThan(15)
      for (const [answer, ask] of Object.entries(answers)) {
        const { html } = await ask()
        expect([answer, problemsOf(html)]).toEqual([answer, []])
        if (answer !== 'a key') expect(html).toContain(escaped)
      }
    })
})

sqliteOnly('the curl command of a new key works in a shell for any app ID', async () => {
  const appId = `it's"$HOME"\`id\`\\`
  const { html } = await visitor.post('/admin/apps/issue', { appId })
  const [, line = ''] = /<pre>(.*?)<\/pre>/s.exec(html) ?? []
  // The shell itself reports which arguments curl gets.
  const script = `curl() { printf '%s\\0' "$@"; }\n${decoded(line).replaceAll('&lt;', '<')}`
  const { stdout } = Bun.spawnSync(['sh', '-c', script])
  const given = stdout.toString().split('\0').slice(0, -1)
  expect(given.slice(0, 2)).toEqual(['-s', 'https://otp.example.com/otp/send'])
  expect(JSON.parse(given.at(-1) ?? '')).toMatchObject({ appId, apiKey: expect.stringMatching(/^otp_live_/) })
})
