import { afterEach, beforeEach, describe, expect, setSystemTime, spyOn, test } from 'bun:test'
import type { Command } from 'commander'
import { actionsByPath, filled, patternOf } from '../../src/adapters/console/form-access.ts'
import { createProgram } from '../../src/commands/program.ts'
import { roles } from '../../src/domain/accounts/accounts.ts'
import { InvalidInput } from '../../src/domain/ground/operator-error.ts'
import type { Action } from '../../src/domain/operator/action.ts'
import { type ActionPorts, actions } from '../../src/domain/operator/actions.ts'
import { auditGroups, auditWords } from '../../src/domain/operator/audit-words.ts'
import type { Entered, Written } from '../../src/domain/operator/fields.ts'
import { addAccount, enterAs } from '../support/accounts.ts'
import { createTestApp, type TestApp } from '../support/app.ts'
import type { Visitor } from '../support/console.ts'
import { operate, tester } from '../support/operator.ts'
import { temporary, testProvider } from '../support/policy.ts'

// Each declared action by its command and by its form: the same effect, the same audit entry, the same words for wrong input.

interface Row {
  readonly entered: Entered
  /** Names and fields of actions that come before it. */
  readonly before?: readonly (readonly [string, Entered])[]
  /** What also comes before it. Resolves to fields that only it knows. */
  readonly prepare?: () => Promise<Entered>
  /** Wrong values, and a part of the message. With the first, the command exits with status 2. */
  readonly wrong: readonly (readonly [Entered, string])[]
}

const budget: Entered = { scope: 'server', period: 'month', amount: '99.50', alertAt: '50,80', stops: false }

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

const noRequest = '00000000-0000-7000-8000-000000000000'
const wrongRequest: Row['wrong'] = [
  [{ requestId: '17' }, 'The request id must be a UUID'],
  [{ requestId: noRequest }, `Request ${noRequest} has no asynchronous notification.`],
]
const rule: Entered = { rule: '+4479', action: 'allow', providers: ['outbox'], sender: 'ACME', brand: 'acme' }

const rows: Readonly<Record<string, Row>> = {
  'brand status': {
    entered: { slug: 'acme', status: 'suspended' },
    wrong: [
      [{ status: 'gone' }, 'The status must be one of'],
      [{ status: 'pending' }, 'is active and cannot become pending'],
    ],
  },
  'queue retry': { prepare: () => notification('failed'), entered: {}, wrong: wrongRequest },
  'queue cancel': { prepare: () => notification('queued'), entered: {}, wrong: wrongRequest },
  'guard allow': {
    before: [['guard block', { prefix: '+3712000' }]],
    entered: { prefix: '+371 20', duration: '2h' },
    wrong: [
      [{ prefix: '0044' }, 'A prefix is'],
      [{ duration: '0m' }, 'The duration must be'],
    ],
  },
  'guard block': {
    entered: { prefix: '+3712000' },
    wrong: [
      [{ prefix: '+44x' }, 'A prefix is'],
      [{ duration: '367d' }, 'The duration must be'],
    ],
  },
  'guard remove': {
    before: [['guard block', { prefix: '+3712000' }]],
    entered: { prefix: '+3712000' },
    wrong: [
      [{ prefix: '+' }, 'A prefix is'],
      [{ prefix: '+371' }, '+371 is neither allowed nor blocked.'],
    ],
  },
  'destination set': {
    before: [['destination set', { rule: '+4479', action: 'block', brand: 'acme' }]],
    entered: rule,
    wrong: [
      [{ rule: 'XX' }, 'XX is not an ISO 3166-1 country code'],
      [{ providers: ['acme-sms'] }, 'acme-sms is not a provider of this server.'],
      [{ sender: 'a name that is too long' }, 'The sender must be a number'],
      [{ brand: 'ghost' }, 'Brand ghost does not exist.'],
    ],
  },
  'destination remove': {
    before: [['destination set', rule]],
    entered: { rule: '+4479', brand: 'acme' },
    wrong: [
      [{ rule: '44' }, 'A rule is a country code'],
      [{ rule: '+447' }, 'There is no rule +447 for brand acme.'],
    ],
  },
  'budget set': {
    entered: budget,
    wrong: [
      [{ amount: '1e3' }, 'The amount must be a number above 0'],
      [{ alertAt: '50,0' }, 'The alerts must be'],
      [{ scope: 'planet' }, 'The scope must be server'],
      [{ scope: 'brand:ghost' }, 'Brand ghost does not exist.'],
    ],
  },
  'budget lift': {
    before: [['budget set', { ...budget, stops: true }]],
    entered: { scope: 'server', duration: '12h' },
    wrong: [[{ duration: 'soon' }, 'The duration must be such as 30m']],
  },
  'budget remove': {
    before: [['budget set', budget]],
    entered: { scope: 'server' },
    wrong: [
      [{ scope: 'country:XX' }, 'The country must be'],
      [{ scope: 'brand:acme' }, 'There is no budget brand:acme.'],
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
  app = await createTestApp({ PUBLIC_URL: 'http://localhost:3000' }, { smsRoutes: { plain: [outbox] } })
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

/** The words of a command line. */
function wordsOf({ name, fields }: Action<ActionPorts>, entered: Entered): readonly string[] {
  const options = Object.entries(fields).flatMap(([field, { as = '' }]) => {
    const written = entered[field]
    if (typeof written === 'boolean') return written === as.startsWith('--no-') ? [] : [as]
    const texts = [written ?? []].flat()
    const [long = ''] = as.split(' ')
    return as.startsWith('-') ? texts.flatMap((text) => [long, text]) : texts
  })
  return [...name.split(' '), ...options]
}

/** In this process. Resolves to its error. */
async function byCommand(action: Action<ActionPorts>, entered: Entered): Promise<Error | undefined> {
  const write = () => true
  const spies = [process.stdout, process.stderr].map((stream) =>
    spyOn(stream, 'write').mockImplementation(write),
  )
  try {
    const program = createProgram({ ...app.database.env, ...settings })
    await program.parseAsync(['bun', 'otpost', ...wordsOf(action, entered)])
  } catch (error) {
    if (error instanceof Error) return error
    throw error
  } finally {
    for (const spy of spies) spy.mockRestore()
  }
  return undefined
}

function byForm(visitor: Visitor, { form, fields, verb }: Action<ActionPorts>, entered: Entered) {
  const values = Object.entries(entered).flatMap(
    ([name, written]): [string, string | readonly string[]][] => {
      if (fields[name]?.kind === 'flag') return written === true ? [[name, '1']] : []
      return [[name, formValue(written)]]
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

const uuid = /^[0-9a-f]{8}-[0-9a-f-]{27}$/

/** What operators have set, and the latest audit entry. */
async function state() {
  const { policy, brands, apps, audit, jobs, sessions } = app.app.context
  const [latest] = await audit.list({ limit: 1 })
  const { action, target, details } = latest ?? {}
  return {
    entry: { action, target: target?.replace(uuid, 'REQUEST'), details },
    rows: await policy.rows(),
    brands: await brands.list(),
    apps: await apps.list(),
    jobs: (await jobs.list({ appId: undefined, limit: 100 })).map(({ requestId: _, ...job }) => job),
    accounts: (await sessions.accounts()).map(({ email, role }) => [email, role]),
  }
}

describe.each(actions.map((action) => [action.name, action] as const))('%s', (name, action) => {
  const row = rows[name]
  if (!row) return
  let command: Awaited<ReturnType<typeof state>>

  afterEach(() => app.close())

  test('by its command', async () => {
    await open()
    await everyone(action)
    const entered = await before(row)
    const earlier = await state()
    for (const [index, [wrong, message]] of row.wrong.entries()) {
      const error = await byCommand(action, { ...entered, ...wrong })
      expect(error?.message).toContain(message)
      if (index === 0) expect(error).toBeInstanceOf(InvalidInput)
    }
    expect(await state()).toEqual(earlier)
    expect(await byCommand(action, entered)).toBeUndefined()
    command = await state()
    expect(Object.keys(action.audit)).toContain(command.entry.action ?? '')
  })

  test('by its form: for its role, after a confirmation if it is sensitive, with the same words and the same effect', async () => {
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
    expect(await state()).toEqual(command)
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
    for (const { help: words } of Object.values(action.fields)) expect(help).toContain(words)
  })
})

test('audit entries have words, and their group too', () => {
  for (const { audit } of actions)
    for (const key of Object.keys(audit)) {
      expect(auditWords).toHaveProperty([key])
      expect(auditGroups).toHaveProperty([key.split('.')[0] ?? ''])
    }
})
