import { expect, test } from 'bun:test'
import { cached } from '../../src/adapters/store/database.ts'

function counting() {
  let token = 0
  const reads: string[] = []
  const read = cached({ token: () => token, invalidate: () => void token++ }, async (key) => {
    reads.push(key)
    return key.length
  })
  return { read, reads, change: () => void token++ }
}

test('a value is read once until something changes', async () => {
  const { read, reads, change } = counting()
  for (const _ of [1, 2, 3]) expect(await read('acme')).toBe(4)
  expect(reads).toHaveLength(1)
  change()
  await read('acme')
  expect(reads).toHaveLength(2)
})

test('at most a thousand keys are cached', async () => {
  const { read, reads } = counting()
  for (let key = 0; key < 1000; key++) await read(`${key}`)
  await read('0')
  expect(reads).toHaveLength(1000)
  await read('one more')
  await read('0')
  expect(reads).toHaveLength(1002)
})

test('a long key is never cached', async () => {
  const { read, reads } = counting()
  for (const length of [256, 256, 257, 257, 250_000, 250_000]) await read('x'.repeat(length))
  expect(reads.map(({ length }) => length)).toEqual([256, 257, 257, 250_000, 250_000])
})
