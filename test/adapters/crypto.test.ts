import { afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { createConsoleSecrets } from '../../src/adapters/crypto/console-secrets.ts'
import { passwordProblem } from '../../src/adapters/crypto/new-password.ts'
import { secretKeysIn, secretsFrom } from '../../src/adapters/crypto/secret-file.ts'
import { createSecrets, newSecretKey, sha256 } from '../../src/adapters/crypto/secrets.ts'
import type { CodeOwner } from '../../src/domain/ground/ports.ts'
import { temporaryFolder } from '../support/app.ts'

const consoleSecrets = createConsoleSecrets(newSecretKey())

const key = 'a secret key of the test, of at least 32 bytes'
const secrets = createSecrets(key)

describe('codes', () => {
  const draws = 60_000
  const codes = Array.from({ length: draws }, () => secrets.newCode())

  test('have six digits, including leading zeros', () => {
    expect(codes.filter((code) => !/^[0-9]{6}$/.test(code))).toEqual([])
  })

  test('have every digit equally often in every place', () => {
    // A count of 60,000 draws at 1 in 10 has a standard deviation of 73: a deviation of seven times that has
    // a probability of 1 in 10^10.
    for (let place = 0; place < 6; place++) {
      for (let digit = 0; digit < 10; digit++) {
        const count = codes.filter((code) => code[place] === String(digit)).length
        expect({ place, digit, count }).toEqual({ place, digit, count: expect.any(Number) })
        expect(Math.abs(count - draws / 10)).toBeLessThan(7 * 73.5)
      }
    }
  })

  test('are drawn from the whole range', () => {
    // Of a million codes, 60,000 draws repeat about 1,770; a source of half as many codes would repeat about
    // 3,480.
    const repeated = draws - new Set(codes).size
    expect(repeated).toBeWithin(1400, 2200)
    expect(codes.some((code) => code < '001000')).toBe(true)
    expect(codes.some((code) => code > '998999')).toBe(true)
  })
})

describe('the hash of a code', () => {
  const id = 'id'
  const owner = { brandSlug: 'acme', channel: 'SMS', to: '12025550143' } as const
  const hashOf = (given: CodeOwner, code: string, by = secrets, record = id) =>
    by.saltedHash(record, by.keyedCodes(given, code)[0])
  const hash = hashOf(owner, '012345')

  test('is the same for the same record, code and key, and contains none of them', () => {
    expect(hashOf({ ...owner }, '012345', createSecrets(key))).toBe(hash)
    expect(hash).toMatch(/^[A-Za-z0-9_-]{43}$/)
  })

  const others: readonly (readonly [string, () => string])[] = [
    ['another code', () => hashOf(owner, '012346')],
    ['another record', () => hashOf(owner, '012345', secrets, 'other')],
    ['another brand', () => hashOf({ ...owner, brandSlug: 'globex' }, '012345')],
    ['another recipient', () => hashOf({ ...owner, to: '12025550144' }, '012345')],
    ['another channel', () => hashOf({ ...owner, channel: 'EMAIL' }, '012345')],
    ['another key', () => hashOf(owner, '012345', createSecrets(`${key}.`))],
    [
      'the same letters divided differently',
      () => hashOf({ ...owner, brandSlug: 'acme1', to: '2025550143' }, '012345'),
    ],
    ['a recipient that has a part of the code', () => hashOf({ ...owner, to: '120255501430' }, '12345')],
    ['a quote in a field', () => hashOf({ ...owner, brandSlug: 'acme","SMS' }, '012345')],
    ['the plain SHA-256 of the code', () => sha256('012345')],
  ]
  test.each(others)('differs for %s', (_, other) => {
    expect(other()).not.toBe(hash)
  })
})

describe('while the secret key is replaced', () => {
  const owner = { brandSlug: 'acme', channel: 'SMS', to: '12025550143' } as const
  const former = createSecrets('f'.repeat(32))
  const both = createSecrets(key, 'f'.repeat(32))

  test('hashes are created with the current key and recognized with the previous one', () => {
    expect(both.keyedCodes(owner, '012345')).toEqual([
      ...secrets.keyedCodes(owner, '012345'),
      ...former.keyedCodes(owner, '012345'),
    ])
    expect(both.subjects('SMS', '12025550143')).toEqual([
      ...secrets.subjects('SMS', '12025550143'),
      ...former.subjects('SMS', '12025550143'),
    ])
  })

  test.each([
    ['one secret', 'a'.repeat(32), ['a'.repeat(32)]],
    ['two, by comma', `${'a'.repeat(32)},${'b'.repeat(40)}`, ['a'.repeat(32), 'b'.repeat(40)]],
    ['two, by line', `${'a'.repeat(32)}\n${'b'.repeat(32)}\n`, ['a'.repeat(32), 'b'.repeat(32)]],
    ['spaces around', ` ${'a'.repeat(32)} , ${'b'.repeat(32)} `, ['a'.repeat(32), 'b'.repeat(32)]],
    ['a short one and a long one', `${'a'.repeat(32)},${'b'.repeat(31)}`, undefined],
    ['the same one twice', `${'a'.repeat(32)},${'a'.repeat(32)}`, ['a'.repeat(32)]],
    ['a trailing comma', `${'a'.repeat(32)},`, undefined],
    ['nothing', '', undefined],
  ])('%s', (_, text, keys) => {
    expect(secretKeysIn(text)).toEqual(keys as never)
  })
})

describe('random', () => {
  const rows: readonly (readonly [string, () => string, RegExp])[] = [
    ['ids', () => secrets.newId(), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/],
    ['API keys', () => secrets.newApiKey().key, /^otp_live_[0-9A-Za-z]{49}$/],
    ['secret keys', newSecretKey, /^[A-Za-z0-9_-]{43}$/],
    ['tokens of sessions', () => consoleSecrets.newToken().token, /^[A-Za-z0-9_-]{43}$/],
    ['recovery codes', () => consoleSecrets.newRecoveryCode(), /^[A-HJ-NP-Z2-9]{4}(-[A-HJ-NP-Z2-9]{4}){5}$/],
  ]
  test.each(rows)('%s are never the same', (_, make, form) => {
    const made = Array.from({ length: 1000 }, make)
    expect(made.filter((each) => !form.test(each))).toEqual([])
    expect(new Set(made).size).toBe(1000)
  })

  test('API keys end with a checksum, as secret scanners compute it', () => {
    const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
    const numberOf = (text: string) => [...text].reduce((sum, digit) => sum * 62 + digits.indexOf(digit), 0)
    // The check value of CRC-32.
    expect(crc32('123456789')).toBe(0xcbf43926)
    for (let index = 0; index < 100; index++) {
      const { key, lastFour } = secrets.newApiKey()
      expect(numberOf(key.slice(-6))).toBe(crc32(key.slice(0, -6)))
      expect(key.slice(-4)).toBe(lastFour)
    }
  })

  test('API keys are stored as SHA-256', () => {
    const { key: apiKey, sha256: stored } = secrets.newApiKey()
    expect(stored).toBe(sha256(apiKey))
    // FIPS 180-2, appendix B.1, in base64url.
    expect(sha256('abc')).toBe(
      Buffer.from('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad', 'hex').toString(
        'base64url',
      ),
    )
  })
})

describe('the hashed identifier of a recipient', () => {
  const [subject] = secrets.subjects('SMS', '12025550143')

  test('is the same each time, and does not contain the recipient', () => {
    expect(createSecrets(key).subjects('SMS', '12025550143')).toEqual([subject])
    expect(subject).toMatch(/^[A-Za-z0-9_-]{22}$/)
  })

  const others: readonly (readonly [string, () => string])[] = [
    ['another number', () => secrets.subjects('SMS', '12025550144')[0]],
    ['another kind', () => secrets.subjects('ip', '12025550143')[0]],
    ['another key', () => createSecrets(`${key}.`).subjects('SMS', '12025550143')[0]],
    ['the plain SHA-256 of the number', () => sha256('12025550143')],
  ]
  test.each(others)('differs for %s', (_, other) => {
    expect(other()).not.toBe(subject)
  })
})

describe('the secret key file', () => {
  let folder: ReturnType<typeof temporaryFolder>
  let file: string
  beforeEach(() => {
    folder = temporaryFolder()
    file = join(folder.path, 'folder', 'otpost.db.key')
  })
  afterEach(() => folder.remove())

  test('is created once and read from then on', () => {
    const {
      secrets: [secret],
      isNew,
    } = secretsFrom(file)
    expect(isNew).toBe(true)
    expect(Buffer.byteLength(secret)).toBeGreaterThanOrEqual(32)
    expect(secretsFrom(file)).toEqual({ secrets: [secret], isNew: false })
    expect(readFileSync(file, 'utf8').trim()).toBe(secret)
    expect(readdirSync(join(folder.path, 'folder'))).toEqual(['otpost.db.key'])
  })

  test('is readable by its owner only, for any umask', () => {
    const umask = process.umask(0)
    try {
      secretsFrom(file)
    } finally {
      process.umask(umask)
    }
    expect((statSync(file).mode & 0o777).toString(8)).toBe('600')
  })

  test('may be provided by the operator', () => {
    const own = join(folder.path, 'own.key')
    writeFileSync(own, `${'k'.repeat(32)}\n`)
    expect(secretsFrom(own)).toEqual({ secrets: ['k'.repeat(32)], isNew: false })
  })

  const unusable: readonly (readonly [string, string])[] = [
    ['empty', ''],
    ['white space', ' \n'.repeat(40)],
    ['31 bytes', 'k'.repeat(31)],
  ]
  test.each(unusable)('with %s is rejected and left unchanged', (_, content) => {
    const own = join(folder.path, 'own.key')
    writeFileSync(own, content)
    chmodSync(own, 0o600)
    expect(() => secretsFrom(own)).toThrow(/32 bytes/)
    expect(readFileSync(own, 'utf8')).toBe(content)
  })
})

describe('a new console password', () => {
  const context = ['ada', 'web-07.prod.internal', 'https://codes.globex.example']

  test.each([
    'thunder kettle mosaic 41 drift',
    'xK9#mQ2$vL8@pR5!',
    'фонарь озеро тетива камень',
    'čtyři slepice na dvoře',
    `${'unlikely words about lighthouses, kelp and granite; '.repeat(5).slice(0, 255)}!`,
    'a tabby🐈 over seven hedges',
    // 15 code points.
    'mq vz🐈 kd rw🐈 xj',
  ])('of %s is accepted', (password) => {
    expect(passwordProblem(password, context)).toBeUndefined()
  })

  test.each([
    ['password', 'has 8 characters'],
    ['xK9#mQ2$vL8@pR', 'has 14 characters'],
    // 15 in NFD, 14 in NFC; 28 UTF-16 units.
    ['xK9#mQ2$vL8@pe\u0301', 'has 14 characters'],
    ['🐈🦔🌲🪨🪵🔦🧭🪢🧵🪡🧲🪜🪣🧺', 'has 14 characters'],
    ['x'.repeat(257), 'has 257 characters'],
    ['thunder kettle\tmosaic 41 drift', 'control character'],
  ])('of %s is rejected: %s', (password, problem) => {
    expect(passwordProblem(password, context)).toContain(problem)
  })

  test.each([
    'Password123456789',
    'P@ssw0rdP@ssw0rd',
    'aaaaaaaaaaaaaaaaaaaa',
    'abcdefghijklmnop',
    'qwertyuiopasdfgh',
    'drowssapdrowssap',
    'OTPost-console-1',
    'codes.globex.example',
    'correct horse battery staple',
  ])('of %s is easy to guess', (password) => {
    expect(passwordProblem(password, context)).toContain('easy to guess')
  })

  test('is the same in any Unicode form', async () => {
    const hash = await consoleSecrets.passwordHash('cafe\u0301 with 4 crooked chairs')
    for (const form of ['caf\u00e9', 'cafe\u0301']) {
      expect(await consoleSecrets.isPassword(`${form} with 4 crooked chairs`, hash, 'unknown')).toBe(true)
    }
  })
})

test('of many simultaneous console password checks, 16 of each kind of browser run and the others are rejected', async () => {
  const hash = await Bun.password.hash('right', { algorithm: 'argon2id', memoryCost: 8, timeCost: 1 })
  for (let round = 0; round < 2; round++) {
    const checks = (['unknown', 'known'] as const).flatMap((browser) =>
      Array.from({ length: 100 }, () => consoleSecrets.isPassword('right', hash, browser)),
    )
    const outcomes = await Promise.allSettled(checks)
    const checked = outcomes.filter((each) => each.status === 'fulfilled')
    expect(checked.map(({ value }) => value)).toEqual(Array(32).fill(true))
    const refused = outcomes.filter((each) => each.status === 'rejected')
    for (const { reason } of refused) expect(reason).toMatchObject({ kind: 'rate_limited' })
  }
})

test('a check without a hash does the work of one with a hash, and fails', async () => {
  const hash = await Bun.password.hash('right', { algorithm: 'argon2id', memoryCost: 8, timeCost: 1 })
  const verify = spyOn(Bun.password, 'verify')
  try {
    const { isPassword } = consoleSecrets
    expect(await isPassword('right', hash, 'unknown')).toBe(true)
    expect(await isPassword('right', undefined, 'unknown', hash)).toBe(false)
    expect(verify.mock.calls).toEqual([
      ['right', hash],
      ['right', hash],
    ])
    expect(await isPassword('right', undefined, 'unknown')).toBe(false)
    expect(verify.mock.calls[2]?.[1]).toMatch(/^\$argon2id\$v=19\$m=65536,t=3,p=1\$/)
  } finally {
    verify.mockRestore()
  }
})

test('a signed text is valid only for its purpose and key, and unchanged', () => {
  const text = fc.string({ minLength: 1 })
  const change = fc.record({ at: fc.nat(65), to: fc.constantFrom(...'AZaz09-_.') })
  const key = newSecretKey()
  const secrets = createConsoleSecrets(key)
  const later = createConsoleSecrets(newSecretKey(), key)
  const other = createConsoleSecrets(newSecretKey())
  fc.assert(
    fc.property(text, text, text, change, (purpose, another, signed, { at, to }) => {
      const value = secrets.sign(purpose, signed)
      expect(secrets.signedText(purpose, value)).toBe(signed)
      expect(later.signedText(purpose, value)).toBe(signed)
      expect(other.signedText(purpose, value)).toBeUndefined()
      if (another !== purpose) expect(secrets.signedText(another, value)).toBeUndefined()
      const changed = value.slice(0, at) + to + value.slice(at + 1)
      if (changed !== value) expect(secrets.signedText(purpose, changed)).toBeUndefined()
      expect(secrets.signedText(purpose, value.slice(0, -1))).toBeUndefined()
    }),
  )
})
