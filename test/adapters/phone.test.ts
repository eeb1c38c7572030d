import { describe, expect, test } from 'bun:test'
import { getCountries, getExampleNumber } from 'libphonenumber-js/max'
import examples from 'libphonenumber-js/mobile/examples'
import { isRegion, nationalizeFor } from '../../src/adapters/phone/nationalize.ts'
import { phone } from '../../src/domain/contact.ts'

type Region = Parameters<typeof nationalizeFor>[0]

describe('a number as someone in the region writes it (design D5)', () => {
  const rows: readonly (readonly [Region, string, string])[] = [
    ['IN', '98765 43210', '919876543210'],
    ['IN', '098765-43210', '919876543210'],
    ['IN', '+91 98765 43210', '919876543210'],
    ['IN', '0091 98765 43210', '919876543210'],
    ['IN', '919876543210', '919876543210'],
    ['IN', '+1 202 555 0143', '12025550143'],
    ['IN', '001 202 555 0143', '12025550143'],
    ['US', '(202) 555-0143', '12025550143'],
    ['US', '202.555.0143', '12025550143'],
    ['US', '1 (202) 555-0143', '12025550143'],
    ['US', '+1 (202) 555-0143', '12025550143'],
    ['US', '011 44 7911 123456', '447911123456'],
    ['US', '00 44 7911 123456', '447911123456'],
    ['US', '+44 7911 123456', '447911123456'],
    ['GB', '07911 123456', '447911123456'],
    ['GB', '7911 123456', '447911123456'],
    ['GB', '00447911123456', '447911123456'],
    ['DE', '0151 23456789', '4915123456789'],
    ['DE', '0049 151 23456789', '4915123456789'],
    // An Italian number keeps its zero.
    ['IT', '06 698 12345', '390669812345'],
    ['IT', '+39 06 698 12345', '390669812345'],
  ]
  test.each(rows)('in %s %p is %s', (region, raw, digits) => {
    expect(phone(raw, nationalizeFor(region))?.address).toBe(digits)
  })

  test('in every region a mobile number has one key, as it is dialed there, with + and as bare E.164 digits', () => {
    const apart: string[] = []
    for (const region of getCountries()) {
      const number = getExampleNumber(region, examples)
      if (!number) continue
      const digits = number.number.slice(1)
      for (const raw of [number.formatNational(), number.formatInternational(), number.number, digits]) {
        const key = phone(raw, nationalizeFor(region))?.identity
        if (key !== digits) apart.push(`${region}: ${raw} is ${key}`)
      }
    }
    expect(apart).toEqual([])
  })

  const senseless: readonly (readonly [Region, string, string])[] = [
    ['US', '+999 123 4567', '9991234567'],
    ['GB', '+1234567', '1234567'],
  ]
  test.each(senseless)('in %s %p, which nobody has, is left to its digits', (region, raw, digits) => {
    expect(phone(raw, nationalizeFor(region))?.address).toBe(digits)
  })

  test.each(['', '+', '()', '00', '0', '-.-'])('%p has no number in it', (raw) => {
    expect(phone(raw, nationalizeFor('IN'))).toBeUndefined()
  })
})

describe('a region', () => {
  const rows: readonly (readonly [string, boolean])[] = [
    ['IN', true],
    ['US', true],
    ['GB', true],
    ['XX', false],
    ['', false],
    ['IND', false],
    ['constructor', false],
  ]
  test.each(rows)('%p: %p', (code, known) => {
    expect(isRegion(code)).toBe(known)
  })
})
