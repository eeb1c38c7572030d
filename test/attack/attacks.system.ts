import { expect, test } from 'bun:test'
import { tryAttack } from './attack.ts'
import { attacks } from './attacks.ts'

test.concurrent.each(attacks.map((attack) => [attack.title, attack] as const))('%s', async (_, attack) => {
  expect(await tryAttack(attack)).toBeUndefined()
})
