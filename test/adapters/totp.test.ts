import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { TOTP } from 'otpauth'
import { newTotpSecret, totpStep, totpUri } from '../../src/adapters/crypto/totp.ts'

/** Of RFC 6238, appendix B: `12345678901234567890`. */
const secret = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'

/** The last six digits of the vectors, which have eight. */
const vectors: readonly (readonly [number, string])[] = [
  [59, '287082'],
  [1_111_111_109, '081804'],
  [1_111_111_111, '050471'],
  [1_234_567_890, '005924'],
  [2_000_000_000, '279037'],
  [20_000_000_000, '353130'],
]

describe('a code of an authenticator app', () => {
  test.each(vectors)('at %p seconds is %p (RFC 6238, appendix B)', (seconds, code) => {
    expect(totpStep(secret, code, seconds * 1000)).toBe(Math.floor(seconds / 30))
  })

  const [at, code] = [1_111_111_111_000, '050471']
  const step = 37_037_037

  test.each([
    [-30_000, step],
    [-60_000, undefined],
    [30_000, step],
    [60_000, undefined],
  ])('with a clock that differs by %p ms has the step %p', (difference, found) => {
    expect(totpStep(secret, code, at + difference)).toBe(found)
  })

  test.each(['050 471', ' 050471\n', '0 5 0 4 7 1'])('may have spaces: %p', (spaced) => {
    expect(totpStep(secret, spaced, at)).toBe(step)
  })

  test.each(['', '50471', '0050471', '050472', '٠٥٠٤٧١', '05047１'])('is not %p', (wrong) => {
    expect(totpStep(secret, wrong, at)).toBeUndefined()
  })

  test('never matches another step than those that the clock allows, and no other secret', () => {
    const time = fc.integer({ min: 60_000, max: 4e12 })
    fc.assert(
      fc.property(time, fc.integer({ min: -200_000, max: 200_000 }), (now, difference) => {
        const own = newTotpSecret()
        const token = new TOTP({ secret: own }).generate({ timestamp: Math.max(0, now + difference) })
        const found = totpStep(own, token, now)
        const wanted = Math.floor(Math.max(0, now + difference) / 30_000)
        const isNear = Math.abs(wanted - Math.floor(now / 30_000)) <= 1
        if (isNear) expect(found).toBeDefined()
        // By chance, codes of two steps are the same.
        if (found !== undefined && found !== wanted)
          expect(new TOTP({ secret: own }).generate({ timestamp: found * 30_000 })).toBe(token)
        return isNear || found === undefined || found !== wanted
      }),
    )
  })
})

describe('a new secret', () => {
  test('has 160 bits in base32, and differs each time', () => {
    const made = Array.from({ length: 50 }, newTotpSecret)
    for (const each of made) expect(each).toMatch(/^[A-Z2-7]{32}$/)
    expect(new Set(made).size).toBe(50)
  })

  test('has a URI for apps, with the account and the server', () => {
    expect(totpUri(secret, 'ana+admin@example.com', 'otp.example.com')).toBe(
      `otpauth://totp/otpost%20otp.example.com:ana%2Badmin%40example.com?issuer=otpost%20otp.example.com&secret=${secret}&algorithm=SHA1&digits=6&period=30`,
    )
  })
})
