import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { manageUrl } from '../../src/adapters/http/manage/description.ts'
import { readConfigurationFile } from '../../src/config/configuration-file.ts'
import { OperatorError } from '../../src/domain/ground/operator-error.ts'
import type { Action } from '../../src/domain/operator/action.ts'
import type { ActionPorts } from '../../src/domain/operator/actions.ts'
import type { Entered } from '../../src/domain/operator/fields.ts'
import { priceImport } from '../../src/domain/operator/money.ts'
import { createTestApp, type TestApp, temporaryFolder } from '../support/app.ts'
import { printed, wordsOf } from '../support/command.ts'
import { operate } from '../support/operator.ts'

// Design D57: the configuration as one file.

const folder = temporaryFolder()
let app: TestApp

beforeEach(async () => {
  app = await createTestApp()
})
afterEach(() => app.close())

const command = (...words: string[]) => printed(app.database.env, words)

function fileOf(text: string): string {
  const path = join(folder.path, `${crypto.randomUUID()}.yaml`)
  writeFileSync(path, text)
  return path
}

const apply = (text: string, ...options: string[]) => command('apply', fileOf(text), ...options)
const exported = async () => `${(await command('config', 'export')).join('\n')}\n`

const whole = `
brands:
  - slug: acme
    displayName: Acme
    notifyTemplates: [ORDER_PLACED]
    dltEnabled: true
    entityId: "1101234567890123456"
  - slug: globex
    displayName: Globex
    lang: de
    domain: globex.example
texts:
  - slug: globex
    key: LOGIN_OTP
    text: "Ihr Code: {{otp}}"
  - slug: globex
    key: TABLE_READY
    lang: en
    text: "Table {{table}} is ready."
    variables: ["table:number:99"]
  - slug: acme
    key: LOGIN_OTP
    email: true
    subject: Your code
    text: "Your code is {{otp}}."
templates:
  - slug: acme
    key: ORDER_PLACED
    ids: ["1107000000000000001"]
    senderId: ACMEIN
apps:
  - appId: till
    brands: [globex, acme]
    operations: [otp]
    perMinute: 60
webhooks:
  - appId: till
    url: https://till.example/events
    events: [otp.verified]
destinations:
  - rule: GB
    action: allow
  - rule: "+4470"
    action: block
  - rule: GB
    brand: globex
    action: monitor
    providers: [outbox]
    sender: Globex
prices: |
  prefix,currency,price
  +44,EUR,0.04
  +1,EUR,0.01
budgets:
  - scope: server
    period: month
    amount: 99.50
    alertAt: [50, 80]
  - scope: brand:acme
    of: codes
    period: day
    amount: 5
    stops: false
relays:
  - name: login
    kind: logto
    brand: acme
    app: till
    minutes: 10
    secret: one-that-is-long-enough
`

test('the second run has no differences, and an export has the same configuration', async () => {
  const lines = await apply(whole)
  expect(lines.map((line) => line.split(' ')[0])).not.toContain('-')
  expect(lines).toContain('+ texts globex TABLE_READY en')
  expect(await apply(whole)).toEqual(['No differences.'])
  const first = await exported()
  expect(await apply(first, '--prune')).toEqual(['No differences.'])
  expect(first).not.toContain('one-that-is-long-enough')
  await app.close()
  app = await createTestApp()
  await apply(first.replace('kind: logto', 'kind: logto\n    secret: one-that-is-long-enough'))
  expect(await exported()).toBe(first)
})

test('a changed webhook keeps its secret, which only the first run prints', async () => {
  const file = 'apps:\n  - appId: till\nwebhooks:\n  - appId: till\n    url: https://till.example/events\n'
  await operate(app, 'app issue', { appId: 'till' })
  const secretOf = async () => (await app.app.context.policy.rows()).webhooks[0]?.secret
  expect((await apply(file)).join()).toContain('whsec_')
  const secret = await secretOf()
  expect((await apply(file.replace('/events', '/otpost'))).join()).not.toContain('whsec_')
  expect(await secretOf()).toBe(secret as string)
})

test('a server built by one file, by the API alone, and by commands alone have the same export', async () => {
  await apply(whole)
  const byFile = await exported()
  const { sections, prices } = readConfigurationFile('whole.yaml', [], whole)
  const changes: (readonly [Action<ActionPorts>, Entered])[] = [
    [priceImport, { prices: prices?.text }],
    ...[...sections].flatMap(([{ set }, entries]) => entries.map(({ entered }) => [set, entered] as const)),
  ]
  const another = async () => {
    await app.close()
    app = await createTestApp()
    // A file does not create the key of an app.
    await operate(app, 'app issue', { appId: 'till' })
  }

  await another()
  for (const [action, entered] of changes)
    await command(...wordsOf(action, entered, (text) => fileOf(String(text))))
  expect(await exported()).toBe(byFile)

  await another()
  const token = (await operate(app, 'admin token create', { name: 'ci', role: 'operator' })).secret
  for (const [{ name }, entered] of changes) {
    const { status } = await app.request('POST', manageUrl(name), {
      headers: { authorization: `Bearer ${token}` },
      body: JSON.stringify(entered),
    })
    expect([name, status]).toEqual([name, 200])
  }
  expect(await exported()).toBe(byFile)
})

describe('a file with faults', () => {
  test.each([
    ['brands:\n  - slug: acme\n    colour: red', 'line 2: `colour` is no field'],
    ['brands:\n  - displayName: X', 'line 2: `slug` is required'],
    ['budget: []', 'line 1: budget is no part of the configuration'],
    ['brands: acme', 'line 1: brands must be a list'],
    ['brands:\n  - acme', 'line 2: brands: an entry must be a map'],
    ['- a', 'line 1: the file must be a map of lists'],
    ['brands:\n  - slug: a\n  - slug: "a', 'line 3:'],
    ['brands:\n  - slug: a\n    slug: b', 'line 3: Map keys must be unique'],
    ['destinations:\n  - rule: GB\n    action: alow', 'line 2: The action must be one of'],
    [
      'destinations:\n  - rule: GB\n    action: allow\n  - rule: GB\n    action: block',
      'line 4: destinations: the same entry as in line 2',
    ],
    ['texts:\n  - slug: acme\n    key: LOGIN_OTP\n    textFile: nowhere.txt', 'line 2: '],
    [
      'texts:\n  - slug: a\n    text: x\n    textFile: x.txt',
      'line 2: The entry has both text and textFile.',
    ],
    ['brands:\n  - slug: *nowhere', 'line 2: Unresolved alias'],
    ['a: &a [x, x]\nb: &b [*a, *a]\nbrands:\n  - slug: *b', 'line 1: a is no part of the configuration'],
    [
      'destinations:\n  - rule: GB\n    action: allow\n    isGroup: true',
      'line 2: `isGroup` is no field of destinations',
    ],
    ['texts:\n  - slug: a\n    draft: true', 'line 2: `draft` is no field of texts'],
    ['templates:\n  - slug: a\n    remove: true', 'line 2: `remove` is no field of templates'],
    ['webhooks:\n  - appId: a\n    off: true', 'line 2: `off` is no field of webhooks'],
    ['prices: [1]', 'line 1: prices must be text'],
    ['prices: ""\npricesFile: prices.csv', 'line 2: The file has both prices and pricesFile.'],
    ['prices: "prefix,currency,price\\n+44,EUR,abc"', 'line 1: prices: Line 2: `price` must be a number'],
    ['1: 2', 'line 1: 1 is no part of the configuration'],
  ])('%j: %s', async (text, message) => {
    await expect(apply(text)).rejects.toThrow(message)
  })

  test('has all of them at once', async () => {
    const text = 'brands:\n  - slug: acme\n    colour: red\n  - displayName: X\nbudget: []'
    await expect(apply(text)).rejects.toThrow(/has 3 faults:\nline 2.*\nline 4.*\nline 5/)
  })
})

test('one rejected entry leaves everything as it was, and each rejection has its line', async () => {
  const before = await exported()
  const text = `
brands:
  - slug: new
    displayName: New
budgets:
  - scope: app:ghost
    period: month
    amount: 5
destinations:
  - rule: DE
    action: allow
    providers: [ghost-sms]
`
  await expect(apply(text)).rejects.toThrow(
    /Nothing was changed:\nline 10: ghost-sms is not.*\nline 6: App ghost/s,
  )
  expect(await exported()).toBe(before)
})

test('a change that its transaction rejects is undone alone, and then all of them', async () => {
  const text = 'brands:\n  - slug: new\n    displayName: New\n  - slug: acme\n    status: pending'
  await expect(apply(text)).rejects.toThrow(
    'Nothing was changed:\nline 4: Brand acme is active and cannot become pending.',
  )
  expect(await exported()).not.toContain('slug: new')
})

test('--dry-run prints the differences, and stores nothing', async () => {
  const before = await exported()
  const lines = await apply(whole, '--dry-run')
  expect(lines.at(-1)).toBe('Nothing was changed.')
  expect(lines).toContain('+ brands globex')
  expect(await exported()).toBe(before)
})

test('--prune removes what the lists of the file do not have, and no list that it leaves out', async () => {
  await apply(whole)
  const lines = await apply(
    'budgets:\n  - scope: server\n    period: month\n    amount: 50\nwebhooks: []',
    '--prune',
  )
  expect(lines).toEqual([
    '- webhooks till',
    '~ budgets server: amount: 99.5 → 50, alertAt: 50, 80 → 80, 100',
    '- budgets brand:acme codes',
  ])
  const after = await exported()
  expect([after.includes('rule: GB'), after.includes('till.example')]).toEqual([true, false])
})

test('each change has its audit entry, as by hand', async () => {
  await apply(whole)
  const actions = (await app.app.context.audit.list({ limit: 100 })).map(({ action }) => action)
  expect(new Set(actions)).toEqual(
    new Set([
      ...['brand.created', 'brand.changed', 'brand.template', 'text.set', 'app.changed', 'app.webhook-set'],
      ...['destination.set', 'price.imported', 'budget.set', 'relay.added'],
    ]),
  )
})

describe('a relay that is stored', () => {
  const relay = (fields: string) =>
    `brands:\n  - slug: globex\n    displayName: Globex\napps:\n  - appId: shop\n    perMinute: 60\nrelays:\n  - name: login\n${fields}`
  const stored = async () => (await app.app.context.policy.rows()).relays[0]

  test('changes its brand, app and minutes, and keeps its URL and secret', async () => {
    await apply(relay('    kind: twilio\n    brand: acme\n    minutes: 10\n'))
    const before = await stored()
    const changed = relay('    kind: twilio\n    brand: globex\n    app: shop\n')
    expect(await apply(changed)).toEqual(['~ relays login: brand: acme → globex, app: none → shop'])
    expect(await stored()).toEqual({
      ...(before ?? expect.unreachable()),
      brandSlug: 'globex',
      appId: 'shop',
    })
    expect(await apply(changed)).toEqual(['No differences.'])
    const [entry] = await app.app.context.audit.list({ actions: ['relay.set'], limit: 10 })
    expect(entry).toMatchObject({
      target: 'login',
      details: { brandSlug: 'acme → globex' },
    })
  })

  test('of another kind is a fault with its line, which says what to do', async () => {
    await apply(relay('    kind: twilio\n    brand: acme\n'))
    await expect(apply(relay('    kind: logto\n    brand: acme\n'))).rejects.toThrow(
      'line 8: the kind of relays login cannot change. Remove the stored one first, or choose another name.',
    )
  })
})

describe('keys of entries', () => {
  test.each([
    ['destinations', 'rule: gb\n    action: block'],
    ['destinations', 'rule: GB\n    brand: ACME\n    action: block'],
    ['destinations', 'rule: +4479\n    action: block'],
    ['budgets', 'scope: country:gb\n    period: day\n    amount: 5'],
    ['budgets', 'scope: brand:ACME\n    period: day\n    amount: 5'],
    ['brands', 'slug: ACME\n    displayName: " Acme "\n    entityId: 1101234567890123457'],
    ['texts', 'slug: ACME\n    key: LOGIN_OTP\n    lang: de-de\n    text: "Code {{otp}}"'],
    ['texts', 'slug: acme\n    key: LOGIN_OTP\n    lang: EN\n    text: "Code {{otp}}"'],
    ['relays', 'name: r\n    kind: logto\n    brand: ACME'],
    ['apps', 'appId: shop\n    brands: [ACME]'],
  ])('%s, %j: are compared as they are stored', async (part, entry) => {
    const text = `${part}:\n  - ${entry}\n`
    const [first] = await apply(text, '--prune')
    expect(first).not.toBe('No differences.')
    const stored = await exported()
    expect(await apply(text, '--prune')).toEqual(['No differences.'])
    expect(await exported()).toBe(stored)
    const other = entry.replace('gb', 'GB').replace('ACME', 'acme').replace('de-de', 'de-DE')
    await expect(apply(`${part}:\n  - ${other}\n  - ${entry}\n`)).rejects.toThrow(
      new RegExp(`line \\d: ${part}: the same entry as in line 2.`),
    )
  })

  test('text is read as it is written, not as a number', async () => {
    await apply('brands:\n  - slug: acme\n    entityId: 1101234567890123457\n')
    await apply('destinations:\n  - rule: +4479\n    action: block\n')
    expect(await exported()).toMatch(/"1101234567890123457".*\+4479/s)
  })

  test('the language of a brand is that of a text without one', async () => {
    const text = 'texts:\n  - slug: acme\n    key: LOGIN_OTP\n    text: "Code {{otp}}"\n'
    const twice = `${text}${text.slice('texts:\n'.length)}    lang: en\n`
    await expect(apply(twice)).rejects.toThrow('line 5: texts: the same entry as in line 2.')
  })
})

describe('an export', () => {
  test.each([
    ['an app for any brand', 'apps:\n  - appId: shop\n    perMinute: 600\n'],
    ['a webhook for all events', 'webhooks:\n  - appId: shop\n    url: https://shop.example/events\n'],
    [
      'a brand that enables its own template',
      'brands:\n  - slug: new\n    displayName: New\n    notifyTemplates: [WELCOME]\ntexts:\n  - slug: new\n    key: WELCOME\n    text: Hi\n',
    ],
  ])('has %s, and can be applied to the same server and to another one', async (_, text) => {
    await apply(text)
    const first = await exported()
    expect(await apply(first, '--prune')).toEqual(['No differences.'])
    await app.close()
    app = await createTestApp()
    await apply(first)
    expect(await exported()).toBe(first)
  })
})

describe('fields that an entry leaves out', () => {
  const rule = 'destinations:\n  - rule: GB\n    action: '

  test('stay as they are, also if another field changes', async () => {
    await apply(`${rule}allow\n    sender: Acme\n    route: plain\n`)
    expect(await apply(`${rule}monitor\n`)).toEqual(['~ destinations GB: action: allow → monitor'])
    expect((await app.app.context.policy.rows()).rules).toMatchObject([{ sender: 'Acme', route: 'plain' }])
  })

  test('become their defaults with --prune, and each is a difference', async () => {
    await apply(`${rule}allow\n    sender: Acme\n`)
    expect(await apply(`${rule}allow\n`, '--prune')).toEqual(['~ destinations GB: sender: Acme → none'])
    await apply('apps:\n  - appId: shop\n    brands: [acme]\n    perMinute: 5\n')
    expect(await apply('apps:\n  - appId: shop\n    perMinute: 5\n', '--prune')).toEqual([
      '~ apps shop: anyBrand: none → true, brands: acme → none',
    ])
  })

  test('are none in an app that may do everything', async () => {
    expect(await apply('apps:\n  - appId: solo\n')).toEqual(['No differences.'])
    const any = 'apps:\n  - appId: solo\n    anyBrand: true\n    perMinute: default\n'
    expect(await apply(any)).toEqual(['No differences.'])
    await apply('apps:\n  - appId: solo\n    brands: [acme]\n    perMinute: 5\n')
    expect(await apply(any)).toHaveLength(1)
    expect(await apply(any)).toEqual(['No differences.'])
  })
})

test('a change of the URL or the events of a webhook keeps its secret', async () => {
  const webhook = (events: string) =>
    `apps:\n  - appId: shop\nwebhooks:\n  - appId: shop\n    url: https://shop.example/${events.length}\n    events: [${events}]\n`
  const [, secret] = await apply(webhook('otp.verified'))
  expect(secret).toContain('whsec_')
  const lines = await apply(webhook('otp.locked'))
  expect(lines).toEqual([
    expect.stringMatching(/^~ webhooks shop: url: .* events: otp.verified → otp.locked$/),
  ])
  const { webhooks } = await app.app.context.policy.rows()
  expect(webhooks).toMatchObject([{ secret: secret?.trim(), previousSecrets: [] }])
})

test('one file changes the currency of the prices and of their budgets', async () => {
  const text = (currency: string) =>
    `prices: |\n  prefix,currency,price\n  +44,${currency},0.04\nbudgets:\n  - scope: server\n    period: month\n    amount: 100\n`
  await operate(app, 'budget set', { scope: 'server', period: 'month', amount: '100' })
  for (const currency of ['EUR', 'USD']) {
    expect((await apply(text(currency))).at(-1)).toEndWith(`→ ${currency}`)
    expect((await app.app.context.policy.rows()).budgets).toMatchObject([{ currency, amountMicros: 1e8 }])
    expect(await apply(text(currency))).toEqual(['No differences.'])
  }
})

test('another secret for a stored relay is a fault', async () => {
  const relay = (secret: string) =>
    `relays:\n  - name: r\n    kind: logto\n    brand: acme\n    secret: ${secret}\n`
  await apply(relay('one-that-is-long-enough'))
  expect(await apply(relay('one-that-is-long-enough'))).toEqual(['No differences.'])
  const other = apply(relay('other-that-is-long-enough'))
  await expect(other).rejects.toThrow(
    'line 2: the secret of relays r cannot change. Remove the stored one first',
  )
})

test('the export of a relay whose kind has its own key says what to add', async () => {
  const text = 'relays:\n  - name: r\n    kind: zitadel\n    brand: acme\n'
  await expect(apply(text)).rejects.toThrow('as secretFile in a configuration file')
})

test('variables of texts in two languages change together', async () => {
  const texts = (variable: string) =>
    ['en', 'de']
      .map(
        (lang) =>
          `  - slug: acme\n    key: READY\n    lang: ${lang}\n    text: "{{${variable}}}"\n    variables: ["${variable}:text:30"]\n`,
      )
      .join('')
  await apply(`texts:\n${texts('guest')}`)
  const first = await exported()
  expect(await apply(`texts:\n${texts('table')}`)).toHaveLength(2)
  await apply('texts:\n  - slug: acme\n    key: READY\n    lang: fr\n    text: "Bonjour"\n')
  expect(await exported()).not.toContain('variables: []')
  await apply(first, '--prune')
  expect(await exported()).toBe(first)
})

test('a merged entry has the fields of the other one', async () => {
  await apply('destinations:\n  - &all\n    rule: GB\n    action: block\n  - <<: *all\n    rule: FR\n')
  expect((await app.app.context.policy.rows()).rules).toHaveLength(2)
})

const changes: readonly (readonly [string, Entered])[] = [
  [
    'brand put',
    { slug: 'acme', displayName: 'Other', color: '#0b57d0', notifyTemplates: [], dltEnabled: false },
  ],
  [
    'brand put',
    { slug: 'globex', lang: 'fr', domain: '', notifyTemplates: ['TABLE_READY'], loginIdEnabled: true },
  ],
  ['brand status', { slug: 'acme', status: 'suspended' }],
  ['text set', { slug: 'globex', key: 'LOGIN_OTP', lang: 'de', text: 'Code {{otp}}' }],
  [
    'text set',
    { slug: 'acme', key: 'LOGIN_OTP', email: true, subject: 'Code', text: '{{otp}}', html: '<p>{{otp}}</p>' },
  ],
  ['text set', { slug: 'acme', key: 'WELCOME', text: 'Hi' }],
  ['brand put', { slug: 'acme', notifyTemplates: ['WELCOME'] }],
  ['brand template', { slug: 'acme', key: 'WELCOME', ids: ['5'] }],
  [
    'text set',
    { slug: 'globex', key: 'TABLE_READY', lang: 'en', text: '{{seat}}', variables: ['seat:number:9'] },
  ],
  ['text remove', { slug: 'globex', key: 'TABLE_READY', lang: 'en' }],
  ['brand template', { slug: 'acme', key: 'ORDER_PLACED', ids: ['msg91=7'], senderId: '', maxLength: '40' }],
  ['brand template', { slug: 'acme', key: 'ORDER_PLACED', remove: true }],
  ['app set', { appId: 'till', anyBrand: true, operations: ['otp', 'notify'], perMinute: 'default' }],
  ['app set', { appId: 'till', newCountrySmsPerDay: '5' }],
  ['app set', { appId: 'shop', brands: ['globex'] }],
  ['app webhook', { appId: 'till', url: 'https://other.example/events', events: ['otp.locked'] }],
  ['app webhook', { appId: 'till', off: true }],
  ['app webhook', { appId: 'shop', url: 'https://shop.example/events' }],
  ['destination set', { rule: 'GB', action: 'monitor', sender: 'Acme', route: 'plain' }],
  ['destination set', { rule: '*', action: 'block' }],
  ['destination remove', { rule: 'GB', brand: 'globex' }],
  ['budget set', { scope: 'server', period: 'day', amount: '1', stops: false }],
  ['budget set', { scope: 'country:*', period: 'day', amount: '1' }],
  ['budget remove', { scope: 'brand:acme', of: 'codes' }],
  ['budget remove', { scope: 'server' }],
  ['price import', { prices: 'prefix,currency,price\n+44,EUR,0.05' }],
  ['price import', { prices: 'prefix,currency,price\n+44,USD,0.05' }],
  ['relay set', { name: 'login', brand: 'globex', app: 'none', minutes: '7' }],
  ['relay remove', { name: 'login' }],
  ['relay add', { name: 'other', kind: 'keycloak', brand: 'acme' }],
]

test('after any changes, --prune restores what was exported', async () => {
  await operate(app, 'app issue', { appId: 'shop' })
  await apply(whole)
  const first = await exported()
  const path = fileOf(first)
  await fc.assert(
    fc.asyncProperty(fc.shuffledSubarray([...changes], { minLength: 1 }), async (some) => {
      for (const [name, entered] of some)
        await operate(app, name, entered).catch((error: unknown) => {
          if (!(error instanceof OperatorError)) throw error
        })
      await command('apply', path, '--prune')
      expect(await exported()).toBe(first)
      expect(await command('apply', path, '--prune')).toEqual(['No differences.'])
    }),
    { numRuns: 15 },
  )
})
