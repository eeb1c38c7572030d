import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { TestOtpost } from 'otpost/testing'
import { otherThan } from '../support/app.ts'
import { authWith } from '../support/better-auth.ts'
import { startSandbox } from '../support/sandbox.ts'

// better-auth with concurrent visitors, on a server process of its own.

let otpost: TestOtpost
let auth: ReturnType<typeof authWith>
beforeAll(async () => {
  otpost = await startSandbox()
  auth = authWith(otpost)
})
afterAll(() => otpost.stop())

const guesses = 30

/** How many of concurrent answers have each status and code. */
async function together(phone: string, codes: readonly string[]): Promise<Readonly<Record<string, number>>> {
  const answers = await Promise.all(codes.map((code) => auth.verify(phone, code)))
  const counts: Record<string, number> = {}
  for (const { status, body } of answers) {
    const answer = `${status} ${body.code ?? ''}`.trim()
    counts[answer] = (counts[answer] ?? 0) + 1
  }
  return counts
}

async function codeFor(phone: string): Promise<string> {
  expect((await auth.send(phone)).status).toBe(200)
  return otpost.codeFor(phone)
}

test('concurrent guesses have three attempts in all', async () => {
  for (let round = 10; round < 20; round++) {
    const phone = `+120255501${round}`
    const code = await codeFor(phone)
    const wrong = Array.from({ length: guesses }, (_, n) =>
      String((Number(code) + n + 1) % 1e6).padStart(6, '0'),
    )
    expect(await together(phone, wrong)).toEqual({
      '400 INVALID_OTP': 3,
      '403 TOO_MANY_ATTEMPTS': guesses - 3,
    })
    expect((await auth.verify(phone, code)).body).toMatchObject({ code: 'TOO_MANY_ATTEMPTS' })
  }
})

test('the right code, sent concurrently, signs in once', async () => {
  const phone = '+12025550120'
  const code = await codeFor(phone)
  expect(await together(phone, Array(guesses).fill(code))).toEqual({
    '200': 1,
    '400 INVALID_OTP': guesses - 1,
  })
  expect(auth.users()).toHaveLength(1)
})

test('two wrong codes before the right one, sent concurrently, let at most one visitor in', async () => {
  const phone = '+12025550121'
  const code = await codeFor(phone)
  const counts = await together(phone, [otherThan(code), otherThan(code), ...Array(guesses).fill(code)])
  expect(counts['200']).toBe(1)
})

test('concurrent requests for a code send one SMS', async () => {
  const phone = '+12025550122'
  const answers = await Promise.all(Array.from({ length: guesses }, () => auth.send(phone)))
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(guesses - 1)
  expect(await otpost.messagesTo(phone)).toHaveLength(1)
})
