import { afterEach, beforeEach, describe, expect, setSystemTime, spyOn, test } from 'bun:test'
import type { Command } from 'commander'
import { filled } from '../../src/adapters/console/form-access.ts'
import { attributeOf } from '../../src/commands/actions.ts'
import { createProgram } from '../../src/commands/program.ts'
import { roles } from '../../src/domain/accounts/accounts.ts'
import { InvalidInput } from '../../src/domain/ground/operator-error.ts'
import type { Action } from '../../src/domain/operator/action.ts'
import { type ActionPorts, actionOf, actions } from '../../src/domain/operator/actions.ts'
import { auditGroups, auditWords } from '../../src/domain/operator/audit-words.ts'
import type { Entered, Written } from '../../src/domain/operator/fields.ts'
import { addAccount, enterAs } from '../support/accounts.ts'
import { createTestApp, type TestApp } from '../support/app.ts'
import type { Visitor } from '../support/console.ts'

// Each declared action by its command and by its form: the same effect, the same audit entry, the same words for wrong input.

interface Row {
  readonly entered: Entered
  /** Names and fields of actions that come before it. */
  readonly before?: readonly (readonly [string, Entered])[]
  /** Wrong values, and a part of the message. With the first, the command exits with status 2. */
  readonly wrong: readonly (readonly [Entered, string])[]
}

const budget: Entered = { scope: 'server', period: 'month', amount: '99.50', alertAt: '50,80', stops: false }

const rows: Readonly<Record<string, Row>> = {
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
  app = await createTestApp({ PUBLIC_URL: 'http://localhost:3000' })
  setSystemTime(app.clock.now)
}

async function signedIn(role: (typeof roles)[number] = 'owner'): Promise<Visitor> {
  const visitor = await enterAs(app, await addAccount(app, `${role}@example.com`, role))
  setSystemTime(app.clock.now)
  return visitor
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
  return visitor.post(filled(form?.path ?? '', entered), { action: verb, ...Object.fromEntries(values) })
}

function formValue(written: Written): string | readonly string[] {
  return typeof written === 'object' ? written : String(written ?? '')
}

async function before({ before: steps = [] }: Row): Promise<void> {
  const { context } = app.app
  const actor = { by: 'command', name: 'tester' } as const
  const { isRegion: isCountry } = await import('../../src/adapters/phone/e164.ts')
  for (const [name, entered] of steps) {
    await actionOf(name)?.perform({ ...context, ...context.acting(actor), isCountry }, entered)
  }
}

/** What operators have set, and the latest audit entry. */
async function state() {
  const { policy, brands, apps, audit, jobs, sessions } = app.app.context
  const [latest] = await audit.list({ limit: 1 })
  const { action, target, details } = latest ?? {}
  return {
    entry: { action, target, details },
    rows: await policy.rows(),
    brands: await brands.list(),
    apps: await apps.list(),
    jobs: await jobs.list({ appId: undefined, limit: 100 }),
    accounts: (await sessions.accounts()).map(({ email, role }) => [email, role]),
  }
}

describe.each(actions.map((action) => [action.name, action] as const))('%s', (name, action) => {
  afterEach(() => app.close())

  const row = rows[name]
  if (!row) return

  test('its command and its form have the same effect and the same audit entry', async () => {
    await open()
    await signedIn()
    await before(row)
    expect(await byCommand(action, row.entered)).toBeUndefined()
    const command = await state()
    await app.close()

    await open()
    const visitor = await signedIn()
    await before(row)
    const { status, html } = await byForm(visitor, action, row.entered)
    expect([status, status < 400 ? '' : html]).toEqual([status === 200 ? 200 : 303, ''])
    expect(await state()).toEqual(command)
    expect(Object.keys(action.audit)).toContain(command.entry.action ?? '')
  })

  test('wrong input has the same words', async () => {
    await open()
    const visitor = await signedIn()
    await before(row)
    const earlier = await state()
    for (const [index, [wrong, message]] of row.wrong.entries()) {
      const error = await byCommand(action, { ...row.entered, ...wrong })
      expect(error?.message).toContain(message)
      // The command exits with status 2.
      if (index === 0) expect(error).toBeInstanceOf(InvalidInput)
      const { status, html } = await byForm(visitor, action, { ...row.entered, ...wrong })
      expect([status, html]).toEqual([409, expect.stringContaining(Bun.escapeHTML(message))])
    }
    expect(await state()).toEqual(earlier)
  })

  test('its form requires the role, and a confirmation if it is sensitive', async () => {
    await open()
    await before(row)
    for (const role of roles.slice(0, roles.indexOf(action.role))) {
      expect((await byForm(await signedIn(role), action, row.entered)).status).toBe(403)
    }
    const visitor = await signedIn(action.role)
    app.advance(16 * 60)
    const earlier = await state()
    const { status, html } = await byForm(visitor, action, row.entered)
    if (action.isSensitive(row.entered)) {
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
    for (const [field, { help: words }] of Object.entries(action.fields)) {
      expect(help).toContain(words)
      expect(attributeOf(field, action.fields[field] ?? expect.unreachable())).not.toBe('')
    }
  })
})

test('audit entries have words, and their group too', () => {
  for (const { audit } of actions)
    for (const key of Object.keys(audit)) {
      expect(auditWords).toHaveProperty([key])
      expect(auditGroups).toHaveProperty([key.split('.')[0] ?? ''])
    }
})
