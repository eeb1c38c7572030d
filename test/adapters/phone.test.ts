import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import parsePhoneNumber, {
  type CountryCode,
  getCountries,
  getExampleNumber,
  type PhoneNumber,
} from 'libphonenumber-js/max'
import metadata from 'libphonenumber-js/max/metadata'
import examples from 'libphonenumber-js/mobile/examples'
import { countryOfPrefix, destinationOf, isE164 } from '../../src/adapters/phone/destination.ts'
import { e164In, isRegion } from '../../src/adapters/phone/e164.ts'
import { formatPhone } from '../../src/adapters/phone/format.ts'
import type { NumberKind } from '../../src/domain/delivery/destination.ts'
import { contactsOf, phone } from '../../src/domain/ground/contact.ts'
import { Random } from '../simulation/random.ts'

type Region = Parameters<typeof e164In>[0]

const mobiles = getCountries().flatMap((region) => {
  const number = getExampleNumber(region, examples)
  return number ? [{ region, number, digits: number.number.slice(1) }] : []
})

describe('a handset has one key for all spellings of its number (design D5)', () => {
  const handsets: readonly (readonly [digits: string, spellings: readonly string[]])[] = [
    [
      '447911123456',
      [
        '+44 7911 123456',
        '+44 (0)7911 123456',
        '+4407911123456',
        '4407911123456',
        '00447911123456',
        '+00447911123456',
        '0044 (0) 7911-123456',
        '000447911123456',
        '0000447911123456',
      ],
    ],
    ['4915123456789', ['+49 (0)151 23456789', '+49 0151 23456789', '0049(0)15123456789']],
    ['33612345678', ['+33 (0)6 12 34 56 78', '33 06 12 34 56 78', '0033 06 12 34 56 78']],
    ['919876543210', ['+91 98765 43210', '+91 0 98765 43210', '00 91 098765 43210']],
    ['79123456789', ['+7 912 345-67-89', '+7 8 912 345-67-89', '+7 (8912) 345 67 89', '0079123456789']],
    [
      '5491123456789',
      ['+54 9 11 2345 6789', '+54 11 15 2345 6789', '+54 011 15 2345 6789', '+54 0 9 11 2345 6789'],
    ],
    [
      '525512345678',
      ['+52 55 1234 5678', '+52 1 55 1234 5678', '+52 044 55 1234 5678', '+52 01 55 1234 5678'],
    ],
    ['12025550143', ['+1 202 555 0143', '+1 1 202 555 0143', '0012025550143']],
    // An Italian number keeps its leading zero.
    ['390669812345', ['+39 06 698 12345', '0039 06 698 12345']],
    ['393123456789', ['+39 312 345 6789', '0039 312 345 6789']],
  ]
  const settings: readonly Region[] = [undefined, 'GB', 'US', 'IN']
  const rows = handsets.flatMap(([digits, spellings]) =>
    settings.map((region) => ({ digits, spellings, region })),
  )
  test.each(rows)('$digits with the region $region', ({ digits, spellings, region }) => {
    const identities = [digits, ...spellings].map((raw) => phone(raw, e164In(region))?.to)
    expect([...new Set(identities)]).toEqual([digits])
  })

  test.each(mobiles)('a mobile number of $region with 00 and its trunk prefix', ({ number, digits }) => {
    const { countryCallingCode: code, nationalNumber } = number
    const trunk = metadata.countries[number.country ?? 'US']?.[5] || ''
    for (const raw of [`+${digits}`, `00${digits}`, `+${code} (${trunk}) ${nationalNumber}`]) {
      expect(phone(raw, e164In(undefined))?.to).toBe(digits)
    }
    const withZero = `${code}0${nationalNumber}`
    expect(phone(withZero, e164In(undefined))?.to).toBe(isE164(withZero) ? withZero : digits)
  })

  const unknown: readonly (readonly [Region, string, string])[] = [
    [undefined, '07911 123456', '07911123456'],
    [undefined, '+999 123 4567', '9991234567'],
    [undefined, '+44 44 7911 123456', '44447911123456'],
    ['US', '+999 123 4567', '9991234567'],
    ['GB', '+1234567', '1234567'],
    ['GB', '0999 123 4567', '09991234567'],
  ]
  test.each(unknown)('with the region %p, %p of no known plan is unchanged', (region, raw, digits) => {
    expect(phone(raw, e164In(region))?.to).toBe(digits)
  })
})

describe('a national number (design D5)', () => {
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
    // Without the trunk prefix that its plan requires: of no known plan.
    ['GB', '7911 123456', '7911123456'],
    ['AU', '0011 44 7911 123456', '447911123456'],
    ['GB', '00447911123456', '447911123456'],
    ['GB', '+07911 123456', '447911123456'],
    ['GB', '0447911123456', '447911123456'],
    ['GB', '04407911123456', '447911123456'],
    ['US', '0447911123456', '0447911123456'],
    [undefined, '0447911123456', '0447911123456'],
    // Also a number in Virginia after a zero.
    ['DE', '0157 12345678', '4915712345678'],
    [undefined, '0157 12345678', '015712345678'],
    ['GB', '0157 12345678', '015712345678'],
    ['US', '+20 3 5550143', '2035550143'],
    ['US', '0020 3 5550143', '2035550143'],
    ['US', '1 (203) 555-0143', '12035550143'],
    ['MX', '55 1234 5678', '525512345678'],
    ['MX', '044 55 1234 5678', '525512345678'],
    ['MX', '01 55 1234 5678', '525512345678'],
    ['AR', '011 15 2345-6789', '5491123456789'],
    ['RU', '8 (912) 345-67-89', '79123456789'],
    ['DE', '0151 23456789', '4915123456789'],
    ['DE', '0049 151 23456789', '4915123456789'],
    // Also a number in Texas; a German number is written with its zero.
    ['DE', '151 23456789', '15123456789'],
    ['DE', '+1 512 345 6789', '15123456789'],
    ['US', '( +47) 851 32 397', '4785132397'],
    ['FR', '6 12 34 56 78', '612345678'],
    ['FR', '06 12 34 56 78', '33612345678'],
    ['BR', '(11) 96123-4567', '5511961234567'],
    ['BR', '011 96123-4567', '5511961234567'],
    ['BR', '55 11 96123-4567', '5511961234567'],
    // Of the area with the digits of the country code.
    ['BR', '(55) 99123-4567', '5555991234567'],
    // An Italian number keeps its leading zero.
    ['IT', '06 698 12345', '390669812345'],
    ['IT', '+39 06 698 12345', '390669812345'],
  ]
  test.each(rows)('in %s %p is %s', (region, raw, digits) => {
    expect(phone(raw, e164In(region))?.to).toBe(digits)
  })

  const both: readonly (readonly [Region, string, string])[] = [
    // Georgia and Norway, Connecticut and Egypt, Mexico City and New Jersey.
    ['US', '(478) 513-2397', '47 851 32 397'],
    ['US', '203.555.0143', '20 3 5550143'],
    ['MX', '1 55 1234 5678', '1 551 234 5678'],
    // Only a + at the beginning makes a number international.
    ['US', '478 513+2397', '47 851 32 397'],
    ['US', '(478) 513-2397 +', '47 851 32 397'],
  ]
  test.each(both)('in %s is rejected if it is one of another country too: %p, +%s', (region, raw, abroad) => {
    const contacts = contactsOf(e164In(region), (domain) => domain)
    expect(contacts.phone(raw)).toBeUndefined()
    expect([contacts.faultOf(raw, 'SMS'), contacts.faultOf(raw)]).toEqual(
      Array(2).fill(
        'is a national number and also a number of another country. Begin it with + and the country code.',
      ),
    )
    expect(contacts.phone(`+${abroad}`)?.to).toBe(abroad.replaceAll(' ', ''))
    expect(contacts.phone(`00${abroad}`)?.to).toBe(abroad.replaceAll(' ', ''))
    expect(phone(raw, e164In(undefined))?.to).toBe(raw.replace(/\D/g, ''))
  })

  test.each(mobiles)('in $region for a mobile number in national format', ({ region, number, digits }) => {
    const dialed = number.formatNational().replace(/[^0-9]/g, '')
    const expected = isE164(dialed) && dialed !== digits ? undefined : digits
    expect(phone(number.formatNational(), e164In(region))?.to).toBe(expected)
  })

  test.each(['', '+', '()', '00', '0', '-.-'])('without digits is rejected: %p', (raw) => {
    expect(phone(raw, e164In('IN'))).toBeUndefined()
  })
})

/**
 * Random mobile numbers as people write them in a region: how many of 100 are read as that number, how many are
 * rejected because they are a number of another country too.
 */
describe('of 1000 random national mobile numbers', () => {
  const rows: readonly (readonly [region: CountryCode, atHome: number, rejected: number])[] = [
    ['US', 903, 97],
    ['CA', 859, 141],
    ['MX', 872, 128],
    ['BR', 855, 145],
    ['IN', 950, 50],
    ['CN', 535, 465],
    ['ES', 990, 10],
    ['GB', 1000, 0],
    ['DE', 1000, 0],
    ['FR', 1000, 0],
    ['NG', 1000, 0],
  ]
  test.each(rows)(
    'in %s some %p are read at home, %p are rejected, none goes abroad',
    (region, atHome, rejected) => {
      const contacts = contactsOf(e164In(region), (domain) => domain)
      const read = randomMobiles(region, 1000).map((number) => {
        // As short as people write it: with the trunk prefix only where it is required.
        const written = number.format('NATIONAL', { nationalPrefix: false })
        const to = contacts.phone(written)?.to
        if (to !== undefined) return to === number.number.slice(1) ? 'home' : `abroad: ${written}`
        expect(contacts.faultOf(written, 'SMS')).toContain('Begin it with + and the country code.')
        return 'rejected'
      })
      expect(read.filter((result) => result.startsWith('abroad'))).toEqual([])
      const count = read.filter((result) => result === 'rejected').length
      expect(Math.abs(count - rejected)).toBeLessThanOrEqual(rejected === 0 ? 0 : 30)
      expect(Math.abs(1000 - count - atHome)).toBeLessThanOrEqual(30)
    },
  )
})

function randomMobiles(region: CountryCode, count: number): readonly PhoneNumber[] {
  const random = new Random(1)
  const plan = metadata.countries[region]
  if (!plan) throw new RangeError(region)
  // The plans of North America have one pattern for fixed lines and mobiles.
  const [pattern, lengths = plan[3]] = plan[11][1]?.[0] ? plan[11][1] : plan[11][0]
  const mobile = new RegExp(`^(?:${pattern})$`)
  const numbers: PhoneNumber[] = []
  while (numbers.length < count) {
    const digits = Array.from({ length: random.pick<number>(lengths) }, () => random.below(10)).join('')
    const number = mobile.test(digits) ? parsePhoneNumber(digits, region) : undefined
    if (number?.isValid() && number.nationalNumber === digits) numbers.push(number)
  }
  return numbers
}

describe('numbers of all plans with random changes', () => {
  const codes = [...Object.keys(metadata.country_calling_codes), ...Object.keys(metadata.nonGeographic)]
  const digits = fc.string({ unit: fc.constantFrom(...'0123456789'), maxLength: 12 })
  const example = fc.constantFrom(...mobiles.map((mobile) => mobile.digits))
  const patterns = [...Object.values(metadata.countries), ...Object.values(metadata.nonGeographic)].flatMap(
    (plan) =>
      (plan?.[11] ?? []).flatMap((type: [pattern: string] | undefined) =>
        type?.[0] ? [{ code: plan?.[0], pattern: new RegExp(`^(?:${type[0]})$`) }] : [],
      ),
  )
  const numbers = fc.oneof(
    digits,
    fc
      .constantFrom(...patterns)
      .chain(({ code, pattern }) => fc.stringMatching(pattern).map((number) => code + number)),
    fc.tuple(fc.constantFrom(...codes), digits).map((parts) => parts.join('')),
    fc
      .tuple(example, fc.nat(14), digits)
      .map(([number, at, end]) => number.slice(0, at) + end.slice(0, 15 - at)),
    fc
      .tuple(example, fc.integer({ min: 1, max: 4 }), fc.constantFrom('0', '1', '8', '9', '00', '044', '15'))
      .map(([number, at, prefix]) => number.slice(0, at) + prefix + number.slice(at)),
  )

  test('are E.164, with its country and kind, if and only if libphonenumber leaves them unchanged', () => {
    fc.assert(
      fc.property(numbers, (number) => {
        const parsed = parsePhoneNumber(`+${number}`)
        const isUnchanged = parsed?.isValid() === true && parsed.number === `+${number}`
        expect(isE164(number)).toBe(isUnchanged)
        expect(destinationOf(number)).toEqual(
          isUnchanged
            ? { country: parsed.country ?? null, kind: kindOf(parsed) }
            : { country: null, kind: 'unknown' },
        )
      }),
      { numRuns: 10_000 },
    )
  })

  test.each([undefined, 'GB', 'DE', 'US', 'AR', 'MX', 'IT', 'RU', 'BR', 'JP', 'CN', 'JE', 'SM'] as const)(
    'have a form that does not change when it is normalized again, with the region %p',
    (region) => {
      const identityOf = (raw: string) => phone(raw, e164In(region))?.to
      const isInternational = (raw: string) => /^(?:\+|00)/.test(raw)
      fc.assert(
        fc.property(fc.constantFrom('', '0', '00', '+', '+0'), numbers, (prefix, number) => {
          const to = identityOf(prefix + number)
          if (to === undefined) return
          expect(identityOf(`+${to}`)).toBe(to)
          // Without + its digits may be a national number too, which is then rejected, not another phone.
          if (!isInternational(prefix + number)) expect([to, undefined]).toContain(identityOf(to))
        }),
        { numRuns: 1000 },
      )
    },
  )
})

const kinds: Readonly<Partial<Record<string, NumberKind>>> = {
  PREMIUM_RATE: 'premium-rate',
  SHARED_COST: 'shared-cost',
  PAGER: 'pager',
  PERSONAL_NUMBER: 'personal',
  UAN: 'uan',
}

function kindOf(number: PhoneNumber): NumberKind {
  if (/^8(?:70|8[123])$/.test(number.countryCallingCode)) return 'satellite'
  if (number.countryCallingCode === '878') return 'personal'
  const type = number.getType()
  return (type && kinds[type]) ?? 'ordinary'
}

describe('the destination of a number (design D40)', () => {
  const rows: readonly (readonly [digits: string, country: string | null, kind: NumberKind])[] = [
    ['18765551234', 'JM', 'ordinary'],
    ['16585551234', 'JM', 'ordinary'],
    ['12025550143', 'US', 'ordinary'],
    ['16135550143', 'CA', 'ordinary'],
    ['77010000000', 'KZ', 'ordinary'],
    ['79123456789', 'RU', 'ordinary'],
    ['447400123456', 'GB', 'ordinary'],
    ['447911123456', 'GG', 'ordinary'],
    ['447797123456', 'JE', 'ordinary'],
    ['447624123456', 'IM', 'ordinary'],
    ['390669812345', 'VA', 'ordinary'],
    ['393123456789', 'IT', 'ordinary'],
    ['35818123456', 'AX', 'ordinary'],
    ['358412345678', 'FI', 'ordinary'],
    ['61891641234', 'CX', 'ordinary'],
    ['61891621234', 'CC', 'ordinary'],
    ['4779123456', 'SJ', 'ordinary'],
    ['262639012345', 'YT', 'ordinary'],
    // A number in Western Sahara: libphonenumber takes the numbers of its plan for Moroccan ones.
    ['212528812345', 'MA', 'ordinary'],
    ['37120000000', 'LV', 'ordinary'],
    // The toll-free, premium-rate and personal numbers of all North America.
    ['18005550199', 'US', 'ordinary'],
    ['19005550199', 'US', 'premium-rate'],
    ['15005550006', 'US', 'personal'],
    ['447012345678', 'GB', 'personal'],
    ['4970012345678', 'DE', 'personal'],
    ['445551234567', 'GB', 'uan'],
    ['33806123456', 'FR', 'uan'],
    ['9221111825888', 'PK', 'uan'],
    // Toll-free, VoIP, and the mailbox of a mobile number.
    ['448001234567', 'GB', 'ordinary'],
    ['445612345678', 'GB', 'ordinary'],
    ['49172551234567', 'DE', 'ordinary'],
    ['37190012345', 'LV', 'premium-rate'],
    ['491801234567', 'DE', 'shared-cost'],
    ['447640123456', 'GB', 'pager'],
    ['870301234567', null, 'satellite'],
    ['881612345678', null, 'satellite'],
    ['882161234567', null, 'satellite'],
    ['883510001234567', null, 'satellite'],
    ['80012345678', null, 'ordinary'],
    ['878101234567890', null, 'personal'],
    ['88812345678901', null, 'uan'],
    ['80812345678', null, 'shared-cost'],
    ['979123456789', null, 'premium-rate'],
    // Of no known plan, also where a country has the calling code.
    ['9991234567', null, 'unknown'],
    ['0447911123456', null, 'unknown'],
    ['4407911123456', null, 'unknown'],
    ['882000000', null, 'unknown'],
    ['8001234', null, 'unknown'],
    ['3712000000', null, 'unknown'],
    // For films; no network has it.
    ['447700900123', null, 'unknown'],
    ['', null, 'unknown'],
  ]
  test.each(rows)('%p: %p, %s', (digits, country, kind) => {
    expect(destinationOf(digits)).toEqual({ country, kind })
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

describe('formatPhone', () => {
  test.each([
    ['447911123456', '+44 7911 123456'],
    ['12025550143', '+1 202 555 0143'],
    ['919876543210', '+91 98765 43210'],
    ['999123456789', '+999123456789'],
    ['4407911123456', '+4407911123456'],
  ])('formats %s as %s', (digits, formatted) => {
    expect(formatPhone(digits)).toBe(formatted)
  })

  test('keeps the digits of every mobile number', () => {
    for (const { digits } of mobiles) expect(formatPhone(digits).replace(/\D/g, '')).toBe(digits)
  })
})

describe('the country of a prefix', () => {
  const rows = [
    ['3712000', 'LV'],
    ['371', 'LV'],
    ['1876', 'JM'],
    ['1', null],
    ['7', null],
    ['7701', 'KZ'],
    ['44', null],
    ['4474', 'GB'],
    ['39347', 'IT'],
    ['882', null],
    ['999', null],
  ] as const
  test.each(rows)('of +%s is %p', (prefix, country) => {
    expect([countryOfPrefix(prefix), countryOfPrefix(prefix)]).toEqual([country, country])
  })
})
