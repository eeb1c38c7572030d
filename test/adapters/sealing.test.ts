import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createSealing } from '../../src/adapters/crypto/sealing.ts'
import { newSecretKey } from '../../src/adapters/crypto/secrets.ts'

describe('sealed text', () => {
  const [key, other] = [newSecretKey(), newSecretKey()]
  const sealing = createSealing(key)

  test('is read by the present key', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), (text, owner) => {
        expect(sealing.unseal(sealing.seal(text, owner), owner)).toEqual({ text, isOld: false })
      }),
    )
  })

  test('differs each time, has its version, and does not contain the text', () => {
    const sealed = sealing.seal('GEZDGNBVGY3TQOJQ', 'ana')
    expect(sealed).toMatch(/^v1\.[A-Za-z0-9_-]+$/)
    expect(Buffer.from(sealed.slice(3), 'base64url').toString('latin1')).not.toContain('GEZDGNBV')
    expect(sealing.seal('GEZDGNBVGY3TQOJQ', 'ana')).not.toBe(sealed)
  })

  test('is read by a previous key, which says so, and by no other key', () => {
    const sealed = sealing.seal('text', 'ana')
    expect(createSealing(other, key).unseal(sealed, 'ana')).toEqual({ text: 'text', isOld: true })
    expect(createSealing(key, other).unseal(sealed, 'ana')).toEqual({ text: 'text', isOld: false })
    expect(createSealing(other).unseal(sealed, 'ana')).toBeUndefined()
  })

  test('cannot be moved to another account', () => {
    expect(sealing.unseal(sealing.seal('text', 'ana'), 'bob')).toBeUndefined()
  })

  test('is refused after any change of a byte, any cut, and with another version', () => {
    const sealed = sealing.seal('text', 'ana')
    const bytes = Buffer.from(sealed.slice(3), 'base64url')
    for (let place = 0; place < bytes.length; place++) {
      const changed = Buffer.from(bytes)
      changed[place] = (changed[place] ?? 0) ^ 1
      expect(sealing.unseal(`v1.${changed.toString('base64url')}`, 'ana')).toBeUndefined()
      expect(sealing.unseal(`v1.${bytes.subarray(0, place).toString('base64url')}`, 'ana')).toBeUndefined()
    }
    expect(sealing.unseal(sealed.replace('v1', 'v2'), 'ana')).toBeUndefined()
    fc.assert(fc.property(fc.string(), (text) => sealing.unseal(text, 'ana') === undefined))
  })
})
