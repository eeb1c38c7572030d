import { expect, test } from 'bun:test'
import { Turns } from '../../src/domain/delivery/turns.ts'

const gateway = { name: 'gateway' }
const mailServer = { name: 'smtp', mostCalls: 4 }

/** Calls that wait or are under way, named by app and kind, and the time-outs of those that wait. */
function scene() {
  const timers = new Set<() => void>()
  const turns = new Turns((_, act) => {
    timers.add(act)
    return () => timers.delete(act)
  })
  const begun: string[] = []
  return {
    begun,
    expire: () => {
      for (const act of timers) act()
    },
    /** Resolves to whether the call got its turn. */
    async enter(called: { readonly name: string; readonly mostCalls?: number }, app: string, isCode = false) {
      const turn = await turns.enter(called, { app, isCode }, 2000)
      if (turn) begun.push(`${app} ${isCode ? 'code' : 'notification'}`)
      return turn
    },
    leave: async (called: { readonly name: string }, isCode = false) => {
      turns.leave(called, { app: '', isCode })
      await Promise.resolve()
      return begun.splice(0)
    },
  }
}

/** Fills the queue, and resolves when all that may begin has begun. */
async function flood(
  { enter }: ReturnType<typeof scene>,
  called: typeof gateway,
  app: string,
  calls: number,
) {
  for (let call = 0; call < calls; call++) void enter(called, app)
  await Promise.resolve()
}

test('a code does not wait for notifications, however many wait', async () => {
  const at = scene()
  await flood(at, gateway, 'spam', 1000)
  expect(at.begun.splice(0)).toHaveLength(83)
  for (let code = 0; code < 27; code++) expect(await at.enter(gateway, 'shop', true)).toBe(true)
  at.begun.splice(0)
  void at.enter(gateway, 'shop', true)
  expect(await at.leave(gateway)).toEqual(['shop code'])
  // Without a code that waits, an end makes room for a notification.
  expect(await at.leave(gateway)).toEqual(['spam notification'])
})

test('apps take turns, with codes and with notifications', async () => {
  const at = scene()
  await flood(at, gateway, 'spam', 100)
  for (const app of ['shop', 'bank', 'shop']) void at.enter(gateway, app)
  at.begun.splice(0)
  const ends: string[] = []
  for (let end = 0; end < 6; end++) ends.push(...(await at.leave(gateway)))
  expect(ends.map((each) => each.split(' ')[0])).toEqual(['spam', 'shop', 'bank', 'spam', 'shop', 'spam'])
})

test('a provider that does not answer leaves room for another', async () => {
  const at = scene()
  for (let code = 0; code < 300; code++) void at.enter(gateway, 'shop', true)
  await Promise.resolve()
  expect(at.begun.splice(0)).toHaveLength(110)
  expect(await at.enter({ name: 'other' }, 'shop', true)).toBe(true)
})

test('a provider with few connections keeps one for codes, and no other provider uses them', async () => {
  const at = scene()
  await flood(at, gateway, 'spam', 1000)
  at.begun.splice(0)
  await flood(at, mailServer, 'spam', 10)
  expect(at.begun.splice(0)).toHaveLength(3)
  expect(await at.enter(mailServer, 'shop', true)).toBe(true)
  at.begun.splice(0)
  void at.enter(mailServer, 'shop', true)
  expect(await at.leave(mailServer)).toEqual(['shop code'])
  const single = { name: 'single', mostCalls: 1 }
  expect(await at.enter(single, 'spam')).toBe(true)
})

test('a call that got no turn in time ends without one, as does one of an app with 1,000 that wait', async () => {
  const at = scene()
  await flood(at, gateway, 'spam', 83 + 999)
  const last = at.enter(gateway, 'spam')
  expect(await at.enter(gateway, 'spam')).toBe(false)
  const other = at.enter(gateway, 'shop')
  at.expire()
  expect([await last, await other]).toEqual([false, false])
  at.begun.splice(0)
  expect(await at.leave(gateway)).toEqual([])
})
