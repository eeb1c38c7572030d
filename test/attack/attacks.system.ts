import { expect, setDefaultTimeout, test } from 'bun:test'
import { tryAttack } from './attack.ts'
import { attacks } from './attacks.ts'

// Other tests use the same two cores.
setDefaultTimeout(120_000)

test.concurrent.each(attacks.map((attack) => [attack.title, attack] as const))('%s', async (_, attack) => {
  expect(await tryAttack(attack)).toBeUndefined()
})
