import type { Entered } from '../../src/domain/operator/fields.ts'
import type { TestApp } from './app.ts'
import { operate } from './operator.ts'

/** What an operator enters in the identity system. */
export interface AddedRelay {
  readonly url: string
  readonly user: string | undefined
  /** Undefined: the identity system made it. */
  readonly secret: string | undefined
}

/** Adds a relay for brand `acme`, and reads what the command prints. */
export async function addRelay(app: TestApp, kind: string, entered: Entered = {}): Promise<AddedRelay> {
  const said = await operate(app, 'relay add', { name: kind, kind, brand: 'acme', ...entered })
  const lines = (said.secret ?? '').split('\n').map((line) => line.split(': ') as [string, string])
  const { url = '', user, secret } = Object.fromEntries(lines)
  return { url, user, secret }
}

export function basic(user: string | undefined, secret: string | undefined): string {
  return `Basic ${btoa(`${user}:${secret}`)}`
}
