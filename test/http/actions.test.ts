import { afterAll, afterEach, beforeEach, describe, expect, setSystemTime, spyOn, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { actionsByPath, codeForms, filled, patternOf } from '../../src/adapters/console/form-access.ts'
import type { ConsoleRoutePorts, ConsoleSettings } from '../../src/adapters/console/page-handler.ts'
import { consoleRoutes } from '../../src/adapters/console/routes.ts'
import { manageUrl } from '../../src/adapters/http/manage/description.ts'
import { createProgram } from '../../src/commands/program.ts'
import { see } from '../../src/domain/ground/advice.ts'
import { InvalidInput } from '../../src/domain/ground/operator-error.ts'
import { hasRole, type Role, roles } from '../../src/domain/ground/role.ts'
import type { Action } from '../../src/domain/operator/action.ts'
import { type ActionPorts, actionOf, actions } from '../../src/domain/operator/actions.ts'
import { auditGroups, auditWords } from '../../src/domain/operator/audit-words.ts'
import type { Entered, Written } from '../../src/domain/operator/fields.ts'
import type { ManageToken, PolicyRows } from '../../src/domain/policy/policy-store.ts'
import { addAccount, enterAs } from '../support/accounts.ts'
import { createTestApp, type TestApp, temporaryFolder } from '../support/app.ts'
import { accessRequest } from '../support/calls.ts'
import { wordsOf } from '../support/command.ts'
import type { Visitor } from '../support/console.ts'
import { worded } from '../support/explained.ts'
import { operate, setText, tester } from '../support/operator.ts'
import { temporary, testProvider } from '../support/policy.ts'

// Each declared action by its command and by its form: the same effect, the same audit entry, the same words for wrong input.

interface Row {
  readonly entered: Entered
  /** Names and fields of actions that come before it. */
  readonly before?: readonly (readonly [string, Entered])[]
  /** What also comes before it. Resolves to fields that only it knows. */
  readonly prepare?: () => Promise<Entered>
  /** Wrong values, a part of the message, and the exit status of the command. */
  readonly wrong: readonly (readonly [Entered, string, 1 | 2])[]
}

const budget: Entered = {
  scope: 'country:*',
  of: 'codes',
  period: 'month',
  amount: '99.50',
  alertAt: '50,80',
  stops: false,
}

/** A notification that the provider did not accept. Resolves to its request ID. */
async function notification(state: 'queued' | 'failed') {
  const message = { channel: 'SMS', brandId: 'acme', to: ['+12025550143'], message: 'Hello', async: true }
  const { requestId } = (await app.post('/notify', message)).body
  const { jobs, now } = app.app.context
  await app.app.queue.idle()
  await jobs.change(requestId, { actor: tester, now: now() }, () => ({
    changes: [{ position: 1, change: { state, dueAt: now() + 5_000, updatedAt: now() } }],
    action: 'queue.retried',
  }))
  return { requestId }
}

function storeText(text: string, how?: 'draft') {
  const target = { brand: 'acme', key: 'LOGIN_OTP', channel: 'SMS', lang: 'hi' } as const
  return setText(app.app.context.acting(tester), { ...target, text }, how)
}

async function draft(): Promise<Entered> {
  await storeText('{{otp}} draft', 'draft')
  return {}
}

const noRequest = '00000000-0000-7000-8000-000000000000'
const wrongRequest: Row['wrong'] = [
  [{ requestId: '17' }, 'The request id must be a UUID', 2],
  [{ requestId: noRequest }, `Request ${noRequest} has no asynchronous notification.`, 1],
]
async function integrationRequest() {
  const { body } = await app.postRaw('/integrations/requests', accessRequest)
  return { id: body.integrationRequestId }
}

const prices = 'prefix,currency,price\n+44,EUR,0.04\n371,EUR,"0,07"'
const rule: Entered = { rule: '+4479', action: 'allow', providers: ['outbox'], sender: 'ACME', brand: 'acme' }

const app42 = {
  appId: 'till',
  brands: ['acme'],
  operations: ['notify'],
  perMinute: '42',
  newCountrySmsPerDay: '50',
}
const url = 'http://localhost:3002/events'

const reviewer = { phone: '+12025550177', brand: 'acme', until: '2026-01-31' }
const invited = { email: 'new@example.com', role: 'viewer' }
const noAccount: Row['wrong'] = [
  [{ email: 'ghost@example.com' }, 'No account has the e-mail address ghost@example.com.', 1],
]

const rows: Readonly<Record<string, Row>> = {
  'request approve': {
    before: [['app issue', { appId: 'held' }]],
    prepare: integrationRequest,
    entered: { appId: 'till', brandSlug: 'Globex', mail: true, subject: 'Welcome', text: 'Hello {{appId}}' },
    wrong: [
      [{ appId: 'a:b' }, 'The appId must be 1 to 64 visible ASCII characters', 2],
      [{ brandSlug: 'no good' }, 'The slug must have', 2],
      [{ text: 'Hello {{apiKey}}' }, 'unknown placeholder {{apiKey}}', 1],
      [{ id: noRequest }, `Request ${noRequest} does not exist.`, 1],
      [{ appId: 'held' }, 'App held already has a key.', 1],
    ],
  },
  'request reject': {
    prepare: integrationRequest,
    entered: { reason: 'no contract yet', mail: true, subject: 'No', text: 'Hello {{contactName}}' },
    wrong: [
      [{ reason: '\u001bno' }, 'U+001B, a control character', 2],
      [{ id: noRequest }, `Request ${noRequest} does not exist.`, 1],
    ],
  },
  'request mail': {
    prepare: async () => {
      const fields = await integrationRequest()
      await operate(app, 'request reject', fields)
      return fields
    },
    entered: { subject: 'No', text: 'Hello {{contactName}}' },
    wrong: [
      [{ text: 'otp_live_0123456789012345678901' }, 'must not contain an API key', 1],
      [{ id: noRequest }, `Request ${noRequest} does not exist.`, 1],
    ],
  },
  'review-number add': {
    entered: reviewer,
    wrong: [
      [{ phone: '12' }, 'The phone number', 2],
      [{ brand: 'ghost' }, 'Brand ghost does not exist.', 1],
      [{ until: '2026-02-30' }, 'The last day must be a date', 2],
      [{ until: '2026-01-31T12:00Z' }, 'The last day must be a date', 2],
      [{ until: '2026-04-02' }, '2026-04-01', 2],
      [{ until: '2025-12-31' }, 'The last day must not be in the past.', 2],
    ],
  },
  'admin token create': {
    entered: { name: 'terraform', role: 'operator', duration: '90d' },
    wrong: [
      [{ name: 'My token' }, 'The name must be 1 to 63', 2],
      [{ role: 'boss' }, 'The role must be one of viewer, operator, owner.', 2],
      [{ duration: 'soon' }, 'The duration must be', 2],
    ],
  },
  'admin token revoke': {
    before: [['admin token create', { name: 'terraform', role: 'viewer' }]],
    entered: { name: 'terraform' },
    wrong: [[{ name: 'ghost' }, 'There is no token ghost.', 1]],
  },
  'relay add': {
    entered: { name: 'login', kind: 'logto', brand: 'acme' },
    wrong: [
      [{ name: 'Log in' }, 'The name must be 1 to 63', 2],
      [{ kind: 'okta' }, 'The kind must be one of supabase', 2],
      [{ brand: 'ghost' }, 'Brand ghost does not exist.', 1],
      [{ app: 'ghost' }, 'App ghost does not exist', 1],
      [{ minutes: '61' }, 'The minutes must be a whole number from 1 to 60.', 2],
      [{ secret: 'short' }, 'The secret must be 16 to 512', 2],
      [{ kind: 'zitadel' }, 'ZITADEL creates the key itself.', 2],
      [{ kind: 'supabase', secret: 'another-secret-than-theirs' }, 'begins with v1,whsec_', 2],
    ],
  },
  'relay set': {
    before: [['relay add', { name: 'login', kind: 'logto', brand: 'acme' }]],
    entered: { name: 'login', minutes: '10' },
    wrong: [
      [{ name: 'ghost' }, 'There is no relay ghost.', 1],
      [{ brand: 'ghost' }, 'Brand ghost does not exist.', 1],
      [{ app: 'ghost' }, 'App ghost does not exist', 1],
      [{ minutes: '61' }, 'The minutes must be a whole number from 1 to 60.', 2],
    ],
  },
  'relay remove': {
    before: [['relay add', { name: 'login', kind: 'logto', brand: 'acme' }]],
    entered: { name: 'login' },
    wrong: [[{ name: 'ghost' }, 'There is no relay ghost.', 1]],
  },
  'review-number remove': {
    before: [['review-number add', reviewer]],
    entered: { phone: reviewer.phone, brand: 'acme' },
    wrong: [[{ phone: '+12025550178' }, 'The phone number is no review number of brand acme.', 1]],
  },
  'admin operator invite': {
    entered: invited,
    wrong: [
      [{ email: 'new' }, 'The e-mail address is not valid.', 2],
      [{ email: 'OWNER@example.com' }, 'owner@example.com already has an account.', 1],
      [{ role: 'boss' }, 'The role must be one of viewer, operator, owner.', 2],
    ],
  },
  'admin operator role': {
    before: [['admin operator invite', invited]],
    entered: { email: 'NEW@example.com', role: 'operator' },
    wrong: [[{ role: 'boss' }, 'The role must be one of', 2], ...noAccount],
  },
  'admin operator reset': {
    before: [['admin operator invite', invited]],
    entered: { email: 'new@example.com' },
    wrong: noAccount,
  },
  'admin operator remove': {
    before: [['admin operator invite', invited]],
    entered: { email: 'new@example.com' },
    wrong: noAccount,
  },
  'app issue': {
    entered: app42,
    wrong: [
      [{ appId: 'a:b' }, 'The appId must be 1 to 64 visible ASCII characters', 2],
      [{ perMinute: '0' }, 'The calls per minute must be a whole number from 1 to 999999.', 2],
      [{ brands: ['ghost'] }, 'Brand ghost does not exist.', 1],
    ],
  },
  'app set': {
    before: [['app issue', { appId: 'till' }]],
    entered: app42,
    wrong: [
      [{ perMinute: '1000000' }, 'The calls per minute must be', 2],
      [{ newCountrySmsPerDay: '0' }, 'The SMS per day to a new country must be a whole number from 1 to', 2],
      [{ anyBrand: true }, 'Select either every brand or single brands.', 2],
      [{ appId: 'ghost' }, 'App ghost does not exist', 1],
      [{ operations: ['send'] }, 'The operation must be one of otp, notify.', 2],
      [{ brands: ['ghost'] }, 'Brand ghost does not exist.', 1],
    ],
  },
  'app rotate': {
    before: [['app issue', { appId: 'till' }]],
    entered: { appId: 'till' },
    wrong: [[{ appId: 'ghost' }, 'App ghost has no active key.', 1]],
  },
  'app revoke-key': {
    prepare: async () => {
      await operate(app, 'app issue', { appId: 'till' })
      const { secret = '' } = await operate(app, 'app rotate', { appId: 'till' })
      return { key: secret.slice(-4) }
    },
    entered: { appId: 'till' },
    wrong: [[{ key: '....' }, 'App till has no active key that ends in ....', 1]],
  },
  'app revoke': {
    before: [['app issue', { appId: 'till' }]],
    entered: { appId: 'till' },
    wrong: [[{ appId: 'ghost' }, 'App ghost has no active key.', 1]],
  },
  'app webhook': {
    entered: { appId: 'shop', url, events: ['otp.verified', 'message.failed'] },
    wrong: [
      [{ url: [] }, 'Give the URL and the events, or end the webhook.', 2],
      [{ events: ['otp.sent'] }, 'The event must be one of message.delivered,', 2],
      [{ url: 'http://shop.example' }, 'https://', 2],
      [{ appId: 'ghost' }, 'App ghost does not exist.', 1],
    ],
  },
  'app webhook-test': {
    before: [['app webhook', { appId: 'shop', url }]],
    entered: { appId: 'shop' },
    wrong: [[{ appId: 'ghost' }, 'App ghost has no webhook.', 1]],
  },
  'app webhook-resend-all': {
    prepare: async () => {
      await operate(app, 'app webhook', { appId: 'shop', url })
      await operate(app, 'app webhook-test', { appId: 'shop' })
      const { events, now } = app.app.context
      const tries = new Map([['shop', 1]])
      for (const taken of await events.take(tries, 1, now(), 1))
        await events.end(taken, 'failed', now(), { httpStatus: 500, error: 'HTTP 500', answer: null })
      return {}
    },
    entered: { appId: 'shop' },
    wrong: [[{ appId: 'ghost' }, 'App ghost has no webhook.', 1]],
  },
  'app webhook-resend': {
    prepare: async () => {
      await operate(app, 'app webhook', { appId: 'shop', url })
      await operate(app, 'app webhook-test', { appId: 'shop' })
      const [event] = await app.app.context.events.latest('shop', 1)
      return { id: event?.id }
    },
    entered: { appId: 'shop' },
    wrong: [[{ id: 'gone' }, 'App shop has no event gone.', 1]],
  },
  'brand put': {
    entered: {
      slug: 'Acme',
      displayName: ' Acme & Co ',
      domain: 'Shop.example',
      lang: 'HI',
      notifyTemplates: ['ORDER_PLACED'],
      loginIdEnabled: true,
      dltEnabled: true,
      dltAllowList: ['https://acme.example/', '+4915550100'],
    },
    wrong: [
      [{ slug: 'no good' }, 'The slug must have', 2],
      [{ domain: 'https://x' }, 'The domain must be a host name', 2],
      [{ lang: 'hi_IN' }, 'The language must be a BCP 47 tag', 2],
      [{ androidHash: 'FA+9qCX9VS' }, 'must be 11 characters', 2],
      [{ logoUrl: 'http://example.com/a.png' }, 'must be an https URL', 2],
      [{ linkUrl: 'https://example.com/#a' }, 'without #', 2],
      [{ color: 'blue' }, 'six hexadecimal digits', 2],
      [{ entityId: 'a&b=c' }, 'The entity id must be', 2],
      [{ notifyTemplates: ['GONE'] }, 'Unknown template for /notify: GONE.', 2],
      [{ dltAllowList: ['a b'] }, 'is no URL or phone number', 2],
    ],
  },
  'brand template': {
    entered: {
      slug: 'acme',
      key: 'LOGIN_OTP',
      lang: 'HI',
      ids: ['1107', 'twilio = HX1'],
      senderId: 'ACMEIN',
    },
    wrong: [
      [{ slug: 'ghost' }, 'Brand ghost does not exist.', 1],
      [{ key: 'GONE' }, 'Unknown template GONE.', 2],
      [{ ids: ['acme-sms=1'] }, 'Unknown provider acme-sms.', 2],
      [{ ids: ['1', '2'] }, 'The id is given twice.', 2],
      [{ ids: ['twilio=a b'] }, 'The template id must be', 2],
      [{ ids: ['whatsapp=Order-Placed'] }, 'The template name of WhatsApp must be', 2],
      [{ senderId: 'AC ME' }, 'The sender id must be', 2],
      [{ lang: 'x y' }, 'x y is not a BCP 47 tag', 2],
      [{ key: 'GONE', ids: [], senderId: undefined, remove: true }, 'Unknown template GONE.', 2],
      [{ maxLength: '41' }, 'from 30 to 40', 2],
      [{ remove: true }, 'has no ID, sender or length', 2],
    ],
  },
  'brand status': {
    entered: { slug: 'acme', status: 'suspended' },
    wrong: [
      [{ status: 'gone' }, 'The status must be one of', 2],
      [{ status: 'pending' }, 'is active and cannot become pending', 1],
    ],
  },
  'provider pause': {
    entered: { name: 'outbox', duration: '1h' },
    wrong: [
      [{ name: 'acme-sms' }, 'acme-sms is not a provider of SMS on this server. It has outbox.', 1],
      [{ duration: '1w' }, 'The duration must be', 2],
    ],
  },
  'provider resume': {
    before: [['provider pause', { name: 'outbox', duration: '1h' }]],
    entered: { name: 'outbox' },
    wrong: [[{ name: 'acme-sms' }, 'acme-sms is not paused.', 1]],
  },
  'text set': {
    entered: {
      slug: 'acme',
      key: 'TABLE_READY',
      lang: 'HI',
      text: 'Hi {{guest}},\nit is {{at}}',
      variables: ['guest:text:30', 'at:datetime:40'],
    },
    wrong: [
      [{ slug: 'ghost' }, 'Brand ghost does not exist.', 1],
      [{ lang: '-' }, 'The language must be a BCP 47 tag', 2],
      [{ text: '{{name}}' }, 'must not have the placeholder {{name}}', 1],
      [{ key: 'ready' }, 'or a new key', 1],
      [{ variables: ['guest:words:30'] }, 'must be name:type:max', 2],
    ],
  },
  'text publish': {
    prepare: () => draft(),
    entered: { slug: 'acme', key: 'LOGIN_OTP', lang: 'HI' },
    wrong: [
      [{ slug: 'ghost' }, 'Brand ghost does not exist.', 1],
      [{ lang: '-' }, 'The language must be a BCP 47 tag', 2],
      [{ email: true }, 'Brand acme has no draft of LOGIN_OTP e-mail in hi.', 1],
    ],
  },
  'text discard': {
    prepare: () => draft(),
    entered: { slug: 'acme', key: 'LOGIN_OTP', lang: 'hi' },
    wrong: [[{ key: 'ORDER_PLACED' }, 'Brand acme has no draft of ORDER_PLACED in hi.', 1]],
  },
  'text remove': {
    prepare: async () => {
      await storeText('{{otp}}')
      return {}
    },
    entered: { slug: 'acme', key: 'LOGIN_OTP', lang: 'hi' },
    wrong: [[{ key: 'ORDER_PLACED' }, 'Brand acme has no text of ORDER_PLACED in hi.', 1]],
  },
  'text restore': {
    prepare: async () => {
      for (const text of ['{{otp}} one', '{{otp}} two']) await storeText(text)
      return {}
    },
    entered: { slug: 'acme', key: 'LOGIN_OTP', lang: 'hi', version: '1' },
    wrong: [
      [{ version: '3' }, 'The audit log has no version 3 of LOGIN_OTP in hi.', 1],
      [{ version: 'first' }, 'The version must be a whole number, such as 3.', 2],
    ],
  },
  'incident acknowledge': {
    entered: { about: 'first day' },
    wrong: [
      [{ about: 'a'.repeat(201) }, 'The incident must have 1 to 200 characters', 2],
      [{ about: 'provider gone' }, 'There is no incident provider gone now.', 1],
    ],
  },
  'incident set': {
    entered: { failedPercent: '20', silentMinutes: '0' },
    wrong: [
      [{ failedPercent: '0' }, 'The share of failed messages must be a whole number from 1 to 100.', 2],
      [{ silentMinutes: '61' }, 'The minutes of silence must be a whole number from 0 to 60.', 2],
    ],
  },
  'queue retry': { prepare: () => notification('failed'), entered: {}, wrong: wrongRequest },
  'queue cancel': { prepare: () => notification('queued'), entered: {}, wrong: wrongRequest },
  'guard mode': {
    before: [['guard mode', { mode: 'deny' }]],
    entered: { mode: 'off', duration: '2h' },
    wrong: [
      [{ mode: 'on' }, 'The mode must be one of deny, record, off.', 2],
      [{ duration: '367d' }, 'The duration must be', 2],
    ],
  },
  'guard allow': {
    before: [['guard block', { prefix: '+3712000' }]],
    entered: { prefix: '+371 20', duration: '2h' },
    wrong: [
      [{ prefix: '0044' }, 'A prefix is', 2],
      [{ prefix: '+1234567890123456' }, 'A prefix is', 2],
      [{ duration: 'soon' }, 'The duration must be', 2],
      [{ duration: '0m' }, 'The duration must be', 2],
    ],
  },
  'guard block': {
    entered: { prefix: '+3712000' },
    wrong: [
      [{ prefix: '+44x' }, 'A prefix is', 2],
      [{ duration: '367d' }, 'The duration must be', 2],
    ],
  },
  'guard remove': {
    before: [['guard block', { prefix: '+3712000' }]],
    entered: { prefix: '+3712000' },
    wrong: [
      [{ prefix: '+' }, 'A prefix is', 2],
      [{ prefix: '+371' }, '+371 is neither allowed nor blocked.', 1],
    ],
  },
  'destination set': {
    before: [['destination set', { rule: '+4479', action: 'block', brand: 'acme' }]],
    entered: rule,
    wrong: [
      [{ rule: 'XX' }, 'XX is not an ISO 3166-1 country code', 2],
      [{ providers: ['acme-sms'] }, 'acme-sms is not a provider of this server.', 1],
      [{ sender: 'a name that is too long' }, 'The sender must be a number', 1],
      [{ brand: 'ghost' }, 'Brand ghost does not exist.', 1],
    ],
  },
  'destination remove': {
    before: [['destination set', rule]],
    entered: { rule: '+4479', brand: 'acme' },
    wrong: [
      [{ rule: '44' }, 'A rule is a country code', 2],
      [{ rule: '+447' }, 'There is no rule +447 for brand acme.', 1],
    ],
  },
  'budget set': {
    entered: budget,
    wrong: [
      [{ amount: '1e3' }, 'The amount must be a number above 0', 2],
      [{ amount: '1,000' }, 'without a separator of thousands, such as 250, 99.50 or 99,50.', 2],
      [{ alertAt: '50,0' }, 'The alerts must be', 2],
      [{ scope: 'planet' }, 'The scope must be server', 2],
      [{ scope: 'server:1' }, 'The scope must be server', 2],
      [{ of: 'calls' }, 'The messages must be one of all, codes, notifications', 2],
      [{ scope: 'country:XX' }, 'The country must be', 2],
      [{ scope: 'brand:ghost' }, 'Brand ghost does not exist.', 1],
      [{ scope: 'app:ghost' }, 'App ghost does not exist.', 1],
    ],
  },
  'price import': {
    entered: { prices },
    wrong: [
      [{ prices: '' }, 'The file has no prices.', 1],
      [{ prices: `\n${prices},outbox\n371,EUR,x` }, 'Line 5: ', 1],
      [{ prices: `${prices},outbox` }, 'Line 3: The row must have 3 fields. It has 4.', 1],
    ],
  },
  'budget lift': {
    before: [['budget set', { ...budget, stops: true }]],
    entered: { scope: 'country:*', of: 'codes', duration: '12h' },
    wrong: [
      [{ duration: 'soon' }, 'The duration must be such as 30m', 2],
      [{ of: 'all' }, 'There is no budget country:*.', 1],
    ],
  },
  'budget remove': {
    before: [['budget set', budget]],
    entered: { scope: 'country:*', of: 'codes' },
    wrong: [
      [{ scope: 'country:XX' }, 'The country must be', 2],
      [{ scope: 'brand:acme' }, 'There is no budget brand:acme of codes.', 1],
    ],
  },
}

test('each action has a row', () => {
  expect(Object.keys(rows).sort()).toEqual(actions.map(({ name }) => name).sort())
})

/** As `createTestApp` has them. */
const settings = { APP_CREDENTIALS: JSON.stringify({ shop: 'key-of-the-shop' }) }

let app: TestApp

async function open(): Promise<void> {
  const outbox = testProvider('outbox', () => temporary)
  app = await createTestApp({ PUBLIC_URL: 'http://localhost:3000' }, { phoneRoutes: { plain: [outbox] } })
  setSystemTime(app.clock.now)
}

async function signedIn(role: (typeof roles)[number] = 'owner'): Promise<Visitor> {
  const visitor = await enterAs(app, await addAccount(app, `${role}@example.com`, role))
  setSystemTime(app.clock.now)
  return visitor
}

/** An owner, and those whose role is too low. */
async function everyone({ role }: Action<ActionPorts>): Promise<readonly [Visitor, ...Visitor[]]> {
  const owner = await signedIn()
  const others: Visitor[] = []
  for (const lower of roles.slice(0, roles.indexOf(role))) others.push(await signedIn(lower))
  return [owner, ...others]
}

afterEach(() => void setSystemTime())

const folder = temporaryFolder()
let files = 0
afterAll(folder.remove)

/** The path of a file with the text. */
function fileOf(text: Written): string {
  const path = join(folder.path, `file-${files++}`)
  writeFileSync(path, String(text))
  return path
}

/** In this process. Resolves to its error. */
async function byCommand(action: Action<ActionPorts>, entered: Entered): Promise<Error | undefined> {
  const write = () => true
  const spies = [process.stdout, process.stderr].map((stream) =>
    spyOn(stream, 'write').mockImplementation(write),
  )
  try {
    const program = createProgram({ ...app.database.env, ...settings })
    await program.parseAsync(['bun', 'otpost', ...wordsOf(action, entered, fileOf)])
  } catch (error) {
    if (error instanceof Error) return error
    throw error
  } finally {
    for (const spy of spies) spy.mockRestore()
  }
  return undefined
}

/** Without the fields that only forms have. */
function byApi(token: string | undefined, { name, fields }: Action<ActionPorts>, entered: Entered) {
  const own = Object.entries(entered).flatMap(([field, written]): [string, Written][] => {
    const { kind, hasNoOption } = fields[field] ?? {}
    if (hasNoOption || (kind === 'text' && typeof written !== 'string')) return []
    return [[field, kind === 'list' && typeof written === 'string' ? written.split(',') : written]]
  })
  return app.request('POST', manageUrl(name), {
    headers: { authorization: `Bearer ${token}` },
    body: JSON.stringify(Object.fromEntries(own)),
  })
}

function byForm(visitor: Visitor, { form, fields, verb }: Action<ActionPorts>, entered: Entered) {
  const values = Object.entries(entered).flatMap(
    ([name, written]): [string, string | readonly string[]][] => {
      if (fields[name]?.kind === 'flag') return written === true ? [[name, '1']] : []
      return [[name, fields[name]?.rows ? [written ?? []].flat().join('\r\n') : formValue(written)]]
    },
  )
  const path = form?.path ?? ''
  const isShared = (actionsByPath.get(patternOf(path))?.length ?? 0) > 1
  return visitor.post(filled(path, entered), {
    ...(isShared && { action: verb }),
    ...Object.fromEntries(values),
  })
}

function formValue(written: Written): string | readonly string[] {
  return typeof written === 'object' ? written : String(written ?? '')
}

/** Resolves to what is entered. */
async function before({ before: steps = [], entered, prepare }: Row): Promise<Entered> {
  for (const [name, fields] of steps) await operate(app, name, fields)
  return { ...entered, ...(await prepare?.()) }
}

/** What operators have set, and the latest audit entry, without what is random. */
/** Without those with which the tests call the management API. */
function withoutOwnTokens({ manageTokens, ...rows }: PolicyRows) {
  const isOwn = ({ name }: ManageToken) => roles.some((role) => role === name)
  return { ...rows, manageTokens: manageTokens.filter((token) => !isOwn(token)) }
}

async function state(): Promise<string> {
  const { policy, prices, brands, apps, audit, jobs, requests, sessions } = app.app.context
  const [latest] = await audit.list({ limit: 1 })
  const { action, target, details } = latest ?? {}
  const all = {
    entry: { action, target, details },
    rows: withoutOwnTokens(await policy.rows()),
    brands: await brands.list(),
    apps: await apps.list(),
    prices: await prices.rows(),
    requests: await requests.list(),
    jobs: await jobs.list({ appId: undefined, limit: 100 }),
    accounts: (await sessions.accounts()).map(({ email, role }) => [email, role]),
  }
  return JSON.stringify(all, null, 1)
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'UUID')
    .replace(/whsec_[^"]+/g, 'SECRET')
    .replace(/("by": )"[^"]*"/g, '$1"OPERATOR"')
    .replace(/("(?:lastFour|keys?|beside|keyedCode|sealedSecret|sha256)": )"[^"]*"/g, '$1"KEY"')
    .replace(/("(?:by|decidedBy)": )"[^"]*"/g, '$1"OPERATOR"')
    .replace(/("(?:lastFour|keys?|beside|keyedCode)": )"[^"]*"/g, '$1"KEY"')
}

describe.each(actions.map((action) => [action.name, action] as const))('%s', (name, action) => {
  const row = rows[name]
  if (!row) return
  let ofCommand: Promise<string> | undefined

  afterEach(() => app.close())

  /** The state after the command, in an app of its own. */
  async function afterCommand(row: Row): Promise<string> {
    await open()
    await everyone(action)
    const entered = await before(row)
    const earlier = await state()
    for (const [wrong, message, status] of row.wrong) {
      const error = await byCommand(action, { ...entered, ...wrong })
      expect([error?.message, error instanceof InvalidInput ? 2 : 1]).toEqual([
        expect.stringContaining(message),
        status,
      ])
    }
    expect(await state()).toEqual(earlier)
    const { audit } = app.app.context
    const [last] = await audit.list({ limit: 1 })
    expect(await byCommand(action, entered)).toBeUndefined()
    const written = await audit.list({ after: last?.id ?? 0, limit: 5 })
    expect(Object.keys(action.audit)).toContain(written.at(-1)?.action ?? '')
    return state()
  }

  test('by its command', async () => {
    ofCommand = afterCommand(row)
    await ofCommand
  })

  if (!action.form) return

  test('by its form: for its role, after a confirmation if it is sensitive, with the same words and the same effect', async () => {
    if (!ofCommand) {
      // Run alone.
      ofCommand = afterCommand(row)
      await ofCommand
      await app.close()
    }
    await open()
    const [visitor, ...others] = await everyone(action)
    const entered = await before(row)
    const earlier = await state()
    for (const other of others) expect((await byForm(other, action, entered)).status).toBe(403)
    for (const [wrong, message] of row.wrong) {
      const { status, html } = await byForm(visitor, action, { ...entered, ...wrong })
      expect([status, html]).toEqual([409, expect.stringContaining(Bun.escapeHTML(message))])
    }
    expect(await state()).toEqual(earlier)
    const { status, html } = await byForm(visitor, action, entered)
    expect([status, status < 400 ? '' : html]).toEqual([status === 200 ? 200 : 303, ''])
    expect(await state()).toEqual(await ofCommand)
  })

  test('by the management API: for its role, with the same words and the same effect', async () => {
    ofCommand ??= afterCommand(row).finally(() => app.close())
    await ofCommand
    await open()
    await everyone(action)
    const entered = await before(row)
    const tokens = new Map<Role, string>()
    for (const role of roles)
      tokens.set(role, (await operate(app, 'admin token create', { name: role, role })).secret ?? '')
    const earlier = await state()
    for (const role of roles.filter((each) => !hasRole(each, action.role)))
      expect((await byApi(tokens.get(role), action, entered)).status).toBe(403)
    for (const [wrong, message] of row.wrong) {
      const { status, body } = await byApi(tokens.get(action.role), action, { ...entered, ...wrong })
      expect([status, body.message]).toEqual([400, expect.stringContaining(message)])
    }
    expect(await state()).toEqual(earlier)
    const { status, body } = await byApi(tokens.get(action.role), action, entered)
    expect([status, body.success]).toEqual([200, true])
    expect(await state()).toEqual(await ofCommand)
  })

  test('its form requires a confirmation if it is sensitive', async () => {
    await open()
    const visitor = await signedIn(action.role)
    const entered = await before(row)
    app.advance(16 * 60)
    const earlier = await state()
    const { status, html } = await byForm(visitor, action, entered)
    if (action.isSensitive(entered)) {
      expect([status, html]).toEqual([403, expect.stringContaining('Confirm that it is you')])
      expect(await state()).toEqual(earlier)
    } else expect(status).not.toBe(403)
  })
})

describe('the help of', () => {
  let program: Command
  beforeEach(() => {
    program = createProgram({})
  })
  test.each(actions.map((action) => [action.name, action] as const))('%s has its fields', (name, action) => {
    const command = name
      .split(' ')
      .reduce<Command | undefined>(
        (parent, word) => parent?.commands.find((each) => each.name() === word),
        program,
      )
    const help = command?.helpInformation().replace(/\s+/g, ' ') ?? ''
    for (const { help: words, hasNoOption } of Object.values(action.fields))
      if (!hasNoOption) expect(help).toContain(words)
  })
})

test('what the domain refers to is a command', async () => {
  const names = new Set<string>()
  for await (const path of new Bun.Glob('src/domain/**/*.ts').scan()) {
    for (const [, name = ''] of (await Bun.file(path).text()).matchAll(/\bsee\('([^']+)'/g)) names.add(name)
  }
  expect(names.size).toBeGreaterThan(20)
  for (const name of names) expect(worded([see(name)])).toStartWith(`\`otpost ${name}`)
})

test('each form of the console has a role, from its action or as code has it', () => {
  // No handler runs, so ports and settings are not needed.
  const { routes } = consoleRoutes({} as ConsoleRoutePorts, {} as ConsoleSettings, () => {
    throw new Error()
  })
  const posted = routes.flatMap(({ method, path }) => (method === 'POST' ? [path] : []))
  const signIn = ['/admin/login', '/admin/login/code', '/admin/login/passkey', '/admin/link']
  expect(posted.sort()).toEqual([...Object.keys(codeForms), ...actionsByPath.keys(), ...signIn].sort())
})

/** Written out, since the tests of each action read its role and its confirmation from its declaration. */
const whoMayDoWhat = {
  'owner, confirmed': [
    'admin operator invite',
    'admin operator remove',
    'admin operator reset',
    'admin operator role',
    'admin token create',
    'review-number add',
  ],
  owner: ['admin token revoke'],
  'operator, confirmed': [
    '/admin/test',
    'app issue',
    'app revoke',
    'app revoke-key',
    'app rotate',
    'app set',
    'app webhook',
    'budget lift',
    'budget remove',
    'budget set',
    'destination remove',
    'guard allow',
    'guard remove',
    'price import',
    'relay add',
    'relay set',
    'request approve',
  ],
  'operator, confirmed for some values': [
    'destination set',
    'guard mode',
    'text publish',
    'text remove',
    'text restore',
    'text set',
  ],
  operator: [
    'app webhook-resend',
    'app webhook-resend-all',
    'app webhook-test',
    'brand put',
    'brand status',
    'brand template',
    'guard block',
    'incident acknowledge',
    'incident set',
    'provider pause',
    'provider resume',
    'queue cancel',
    'queue retry',
    'relay remove',
    'request mail',
    'request reject',
    'review-number remove',
    'text discard',
  ],
  'viewer, confirmed': [
    '/admin/account/app',
    '/admin/account/passkey',
    '/admin/account/passkey/remove',
    '/admin/account/password',
    '/admin/account/recovery-codes',
    '/admin/sessions/:id/revoke',
  ],
  viewer: [
    '/admin/brands/:slug/texts/mail',
    '/admin/brands/:slug/texts/preview',
    '/admin/destinations/check',
    '/admin/health',
    '/admin/logout',
    '/admin/preview',
    '/admin/providers/:name/try',
    '/admin/search',
  ],
}

test('each action and each form requires its role and its confirmation', () => {
  const confirmed = { yes: ', confirmed', no: '', 'for some values': ', confirmed for some values' } as const
  const found = actions.map(({ name, role, confirmation }) => [role + confirmed[confirmation], name] as const)
  for (const [path, { role, isSensitive }] of Object.entries(codeForms)) {
    const [any, ofCode] = [{}, { templateKey: 'LOGIN_OTP' }].map((form) =>
      isSensitive(new URLSearchParams(form)),
    )
    found.push([role + confirmed[any ? 'yes' : ofCode ? 'for some values' : 'no'], path])
  }
  const names = Map.groupBy(found, ([access]) => access)
  expect(
    Object.fromEntries(Array.from(names, ([access, all]) => [access, all.map(([, name]) => name).sort()])),
  ).toEqual(whoMayDoWhat)
})

test.each([
  ['allow', true],
  ['monitor', true],
  ['block', false],
] as const)('a destination rule to %s requires a confirmation: %p', (kind, expected) => {
  expect(actionOf('destination set')?.isSensitive({ ...rule, action: kind })).toBe(expected)
})

test.each([
  ['off', true],
  ['record', true],
  ['deny', false],
] as const)('the mode %s of the guard requires a confirmation: %p', (mode, expected) => {
  expect(actionOf('guard mode')?.isSensitive({ mode })).toBe(expected)
})

test('audit entries have words, and their group too', () => {
  for (const { audit } of actions)
    for (const key of Object.keys(audit)) {
      expect(auditWords).toHaveProperty([key])
      expect(auditGroups).toHaveProperty([key.split('.')[0] ?? ''])
    }
})

test('an advised command can be run: it has every required option, and no option with its opposite', () => {
  expect(worded([see('review-number remove')])).toBe('`otpost review-number remove PHONE --brand SLUG`')
  expect(worded([see('brand put', { slug: 'acme', entityId: 'ID' })])).toBe(
    '`otpost brand put acme --entity ID`',
  )
})
