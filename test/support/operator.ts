import { isHashOf } from '../../src/adapters/crypto/secrets.ts'
import type { Database } from '../../src/adapters/sqlite/database.ts'
import { createEventLogWriter } from '../../src/adapters/sqlite/event-log.ts'
import { createOtpStore } from '../../src/adapters/sqlite/otp-store.ts'
import { storeDatabase } from '../../src/adapters/sqlite/stores.ts'
import { createSweep } from '../../src/adapters/sqlite/sweep.ts'
import { createStores } from '../../src/adapters/store/stores.ts'
import { actionPorts } from '../../src/commands/actions.ts'
import type { Env } from '../../src/commands/common.ts'
import { readStoreConfig } from '../../src/config/store.ts'
import type { Context } from '../../src/context.ts'
import type { Actor } from '../../src/domain/ground/audit.ts'
import type { Said } from '../../src/domain/operator/action.ts'
import { actionOf } from '../../src/domain/operator/actions.ts'
import type { OperatorStore } from '../../src/domain/operator/changes.ts'
import type { Entered } from '../../src/domain/operator/fields.ts'
import { textSet } from '../../src/domain/operator/texts.ts'
import type { Brand } from '../../src/domain/texts/brand.ts'
import type { DeclaredVariable } from '../../src/domain/texts/brand-texts.ts'

/** Who changes things in tests. */
export const tester: Actor = { by: 'command', name: 'tester' }

/** A recipient without records. */
export const nobody = { channel: 'SMS', to: '10000000000' } as const

/** For a sweep that is to leave what has only grown old. */
export const keepAll = { eventLog: 0, audit: 0, requests: 0 } as const

/** Does a declared action in a running service, as its command would with these settings. */
export async function operate(
  { app }: { readonly app: { readonly context: Context } },
  name: string,
  entered: Entered,
  env: Env = {},
): Promise<Said> {
  const action = actionOf(name)
  if (!action) throw new Error(`there is no action ${name}`)
  return action.perform(await actionPorts(app.context, readStoreConfig({}), env, tester), entered)
}

export interface NewText {
  readonly brand: string
  readonly key: string
  readonly channel: 'SMS' | 'EMAIL'
  readonly lang?: string | undefined
  readonly subject?: string | null | undefined
  readonly text: string
  readonly html?: string | null | undefined
  readonly variables?: readonly DeclaredVariable[] | undefined
}

/** As `text set` stores a text. */
export function setText(
  ports: Parameters<typeof textSet.run>[0],
  { brand: slug, channel, lang, subject, html, variables, ...text }: NewText,
  how?: 'draft',
) {
  const seen = { version: undefined, updatedAt: undefined, draftAt: undefined, seenVariables: undefined }
  const flags = { email: channel === 'EMAIL', draft: how === 'draft', mustBeNew: false, removesDraft: false }
  return textSet.run(ports, { ...text, ...seen, ...flags, slug, lang, subject, html, variables })
}

/** The stores of a database that no service is wired to. */
export function sqliteStores(database: Database, now = Date.now) {
  return createStores(storeDatabase(database, now))
}

/** What requests and the expiry cleanup write to such a database. */
export function sqliteWrites(database: Database) {
  return {
    ...createOtpStore(database, isHashOf),
    ...createEventLogWriter(database),
    sweep: createSweep(database),
  }
}

/** An operator of a database that no service is wired to. */
export function operatorOf(database: Database, now = () => 0) {
  return { operator: sqliteStores(database).operator, now, actor: tester }
}

/** Stores a brand, or a changed brand, without the checks for operators. */
export async function storeBrand(
  { operator }: { readonly operator: OperatorStore },
  slug: string,
  change: (current: Brand | undefined) => Brand,
): Promise<Brand> {
  const entry = { action: 'brand.changed', target: slug, details: {} } as const
  const { brand } = await operator.change({ brandSlug: slug }, { actor: tester, now: 0 }, (current) => ({
    brand: change(current.brand),
    entry,
  }))
  return brand
}
