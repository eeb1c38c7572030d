import { describe, expect, test } from 'bun:test'
import { domainToASCII } from 'node:url'
import tlds from 'tlds'
import { isTopLevelDomain } from '../../src/adapters/sms/top-level-domains.ts'
import { Failure } from '../../src/domain/ground/failures.ts'
import { hasUrl, scriptFault } from '../../src/domain/ground/words.ts'
import { english, type OtpKey } from '../../src/domain/texts/otp-texts.ts'
import {
  notifyTemplateKeys,
  render,
  renderOtp,
  type Template,
  templateOf,
  templateVariables,
} from '../../src/domain/texts/templates.ts'

function template(key: string): Template {
  const found = templateOf(key)
  if (!found) throw new Error(`there is no template ${key}`)
  return found
}

/** The failure code for some variables, or "ok". */
function verdict(key: string, variables: Readonly<Record<string, unknown>>): string {
  try {
    templateVariables(template(key), variables, isTopLevelDomain)
    return 'ok'
  } catch (error) {
    if (error instanceof Failure) return error.kind
    throw error
  }
}

const placed = { customerName: 'Ann', orderId: 'A-1', orderDate: '2026-01-31' }
const delivered = { customerName: 'Ann', orderId: 'A-1', deliveryDateTime: '2026-01-31T10:30' }

describe('the catalogue (spec 4.4 rules 5 and 6, design D10)', () => {
  test('has three templates for /notify', () => {
    expect([...notifyTemplateKeys].sort()).toEqual(['ORDER_DELIVERED', 'ORDER_PLACED', 'OUT_FOR_DELIVERY'])
  })

  const variables: readonly (readonly [string, readonly string[]])[] = [
    ['ORDER_PLACED', ['customerName', 'orderId', 'orderDate']],
    ['OUT_FOR_DELIVERY', ['customerName', 'orderId']],
    ['ORDER_DELIVERED', ['customerName', 'orderId', 'deliveryDateTime']],
  ]
  test.each(variables)('gives %s the variables %p', (key, names) => {
    expect(template(key).variables.map(({ name }) => name)).toEqual([...names])
  })

  test.each([...notifyTemplateKeys])('has a value for every placeholder in the text of %s', (key) => {
    const { text, variables } = template(key)
    const places = [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
    expect(places.sort()).toEqual(['businessName', ...variables.map(({ name }) => name)].sort())
  })

  test('throws for a placeholder without a value', () => {
    const mistyped: Template = { ...template('ORDER_PLACED'), text: 'Hi {{custmerName}}' }
    expect(() => render(mistyped, { customerName: 'Ann' })).toThrow('custmerName')
  })

  test.each(['LOGIN_OTP', 'LOGIN_OTP_WITH_ID'])('has %s for the OTP endpoints only', (key) => {
    expect(template(key).audience).toBe('otp')
  })

  test.each(['', 'order_placed', 'constructor', '__proto__', 'toString'])('does not have %p', (key) => {
    expect(templateOf(key)).toBeUndefined()
  })
})

describe('the variables of a template (spec 4.4 rule 7)', () => {
  test.each(Object.keys(placed))('without %s, or with null for it, return missing_variable', (name) => {
    const { [name as keyof typeof placed]: _, ...others } = placed
    expect(verdict('ORDER_PLACED', others)).toBe('missing_variable')
    expect(verdict('ORDER_PLACED', { ...placed, [name]: null })).toBe('missing_variable')
  })

  test('return the name of the missing one', () => {
    expect(() =>
      templateVariables(template('ORDER_PLACED'), { customerName: 'Ann', orderDate: 'x' }, isTopLevelDomain),
    ).toThrow('Missing required variable: orderId')
  })

  test('report a missing variable before an invalid one', () => {
    expect(verdict('ORDER_PLACED', { customerName: '', orderId: '?' })).toBe('missing_variable')
  })

  test('do not include inherited properties', () => {
    expect(verdict('OUT_FOR_DELIVERY', Object.create({ customerName: 'Ann', orderId: 'A-1' }))).toBe(
      'missing_variable',
    )
  })

  test('may include unknown variables, which are ignored', () => {
    const given = { ...placed, colour: 'red', businessName: 'Acme', deliveryDateTime: 1 }
    expect(templateVariables(template('ORDER_PLACED'), given, isTopLevelDomain)).toEqual(placed)
  })

  test('may not include otp, unless it is null', () => {
    expect(verdict('ORDER_PLACED', { ...placed, otp: '123456' })).toBe('validation_error')
    expect(verdict('ORDER_PLACED', { ...placed, otp: null })).toBe('ok')
  })

  const values: readonly (readonly [string, unknown, boolean])[] = [
    ['customerName', 'A', true],
    ['customerName', 'José Müller-Łuczak', true],
    ['customerName', '李小龙', true],
    ['customerName', "St. John O'Neil", true],
    ['customerName', 'A.Kumar', true],
    ['customerName', 'x'.repeat(40), true],
    ['customerName', '😀'.repeat(40), true],
    ['customerName', 'x'.repeat(41), false],
    ['customerName', '', false],
    ['customerName', 'Ann\nLee', false],
    ['customerName', 'Ann\u0000', false],
    ['customerName', 'Ann\u0085', false],
    ['customerName', 'see http://evil.example', false],
    ['customerName', 'www.evil', false],
    ['customerName', 7, false],
    ['customerName', ['Ann'], false],
    ['customerName', true, false],
    ['orderId', 'A', true],
    ['orderId', '0._/#-', true],
    ['orderId', 'a'.repeat(40), true],
    ['orderId', 'a'.repeat(41), false],
    ['orderId', '', false],
    ['orderId', '-1', false],
    ['orderId', '#1', false],
    ['orderId', 'A 1', false],
    ['orderId', 'A1\n', false],
    ['orderId', 'Ä1', false],
    ['orderId', 12, false],
    ['orderDate', '2026-01-31', true],
    ['orderDate', '2024-02-29', true],
    ['orderDate', '2000-02-29', true],
    ['orderDate', '2023-02-29', false],
    ['orderDate', '1900-02-29', false],
    ['orderDate', '2026-02-30', false],
    ['orderDate', '2026-04-31', false],
    ['orderDate', '2026-13-01', false],
    ['orderDate', '2026-00-10', false],
    ['orderDate', '2026-01-00', false],
    ['orderDate', '2026-1-1', false],
    ['orderDate', '20260131', false],
    ['orderDate', '31-01-2026', false],
    ['orderDate', '2026/01/31', false],
    ['orderDate', '2026-01-31T10:30', false],
    ['orderDate', ' 2026-01-31', false],
    ['orderDate', '2026-01-31\n', false],
    ['orderDate', 'tomorrow', false],
    ['orderDate', 20260131, false],
  ]
  test.each(values)('%s %p: %p', (name, value, accepted) => {
    expect(verdict('ORDER_PLACED', { ...placed, [name]: value })).toBe(accepted ? 'ok' : 'validation_error')
  })

  const instants: readonly (readonly [unknown, boolean])[] = [
    ['2026-01-31T10:30', true],
    ['2026-01-31T00:00', true],
    ['2026-01-31T23:59:59', true],
    ['2026-01-31T10:30Z', true],
    ['2026-01-31T10:30:15.123Z', true],
    ['2026-01-31T10:30:15+05:30', true],
    ['2026-01-31T10:30-08:00', true],
    ['2026-01-31T10:30+0530', true],
    ['2026-01-31', false],
    ['2026-01-31T10', false],
    ['2026-01-31T1030', false],
    ['2026-01-31 10:30', false],
    ['2026-01-31T24:30', false],
    ['2026-01-31T10:60', false],
    ['2026-01-31T10:30:61', false],
    ['2026-02-30T10:30', false],
    ['2026-01-31T10:30+24:00', false],
    ['2026-01-31T10:30+05:60', false],
    ['2026-01-31T10:30 ', false],
    ['31 Jan 2026 10:30', false],
    ['', false],
    [1_769_855_400_000, false],
  ]
  test.each(instants)('deliveryDateTime %p: %p', (value, accepted) => {
    expect(verdict('ORDER_DELIVERED', { ...delivered, deliveryDateTime: value })).toBe(
      accepted ? 'ok' : 'validation_error',
    )
  })
})

describe('a URL in a variable (design D10)', () => {
  const links = [
    'http://a',
    'HTTPS://Evil.example',
    'see ftp://evil.example now',
    'custom+app://open',
    'www.evil',
    'WWW.EVIL.ORG',
    'evil.com',
    'Evil.COM',
    'go to evil.com.',
    '(evil.net)',
    'bit.ly/x',
    't.me/evil',
    'evil.co.uk',
    'evil.io',
    'login-acme.shop',
    'evil.support:8080/pay',
    '10.0.0.1:8080/pay',
    'evil.support',
    'my.evil.bank',
    'evil.SUPPORT',
    'evil.support.',
    'evil.support-',
    '(evil.support/x)',
    'pay@evil.support',
    'evil_x.support',
    'J.De Vries',
    'evil.рф',
    'зло.РФ',
    'evil.xn--p1ai',
    'evil.भारत',
    'evil。com',
    'evil．com',
    'evil｡com',
    'ｅｖｉｌ.ｃｏｍ',
    'http：／／evil',
    'evil\u200d.com',
    'evil.c\u200com',
    'evil.com\ufe0f',
    'bücher.de',
    '💩.la',
    'i❤.ws',
    'evil_.bank',
    'tel:+4479',
    'mailto:a@b',
    'javascript:alert(1)',
  ]
  test.each(links)('is detected in %p', (text) => {
    expect(hasUrl(text, isTopLevelDomain)).toBe(true)
  })

  test('is detected for each delegated top-level domain, also as xn--', () => {
    const hosts = tlds.flatMap((tld) => [`evil.${tld}`, `evil.${domainToASCII(tld)}`])
    expect(hosts.filter((host) => !hasUrl(host, isTopLevelDomain))).toEqual([])
  })

  const names = [
    '',
    'Ann',
    'St. John',
    'St.John',
    'A.Kumar',
    'J.R.R. Tolkien',
    'M. Night',
    "O'Neil Jr.",
    'Ann, Ben and Cat...',
    'Anne-Marie',
    '3.5',
    'Ann/Ben',
    'A-1/2#3_4.5',
    'Hello: world',
    'INV.AB/12',
    'evil.example',
    'Dr. Smith',
    'Com. Bank',
    '.com',
    '3.5kg',
    'A.K.M. Rahman',
    'evil.support-team',
    '2026-01-31T10:30:15.123Z',
    '李小龙。',
  ]
  test.each(names)('is not detected in %p', (text) => {
    expect(hasUrl(text, isTopLevelDomain)).toBe(false)
  })
})

describe('mixed scripts (design D31)', () => {
  const mixed = [
    'HS\u0412\u0421 Bank',
    'p\u0430ypal',
    'G\u03bf\u03bfgle',
    '\u0421\u03bf\u0441\u0430',
    'B2\u0412',
    'Ac\u200d\u043ce',
    'one_\u0434\u0432\u0430',
    '\u{1d407}\u{1d412}\u0412\u0421',
    '\u24bd\u24c8\u0412\u0421',
    '\u13e2ayPal',
  ]
  test.each(mixed)('are detected in %p', (text) => {
    expect(scriptFault(text)).toStartWith('must not mix')
  })

  const plain = [
    '',
    'Booking.com',
    'Caf\u00e9 M\u00fcller',
    '\u0411\u0430\u043d\u043a Pay',
    'Pay-\u0411\u0430\u043d\u043a',
    '\u0395\u03bb\u03bb\u03ac\u03b4\u03b1 24',
    '\u30a2\u30af\u30e1ABC',
    '\u00b5Torrent',
    '\u0438\u0432\u0430\u043d@example.com',
    '\u0928\u092e\u0938\u094d\u0924\u0947 Acme',
  ]
  test.each(plain)('are not detected in %p', (text) => {
    expect(scriptFault(text)).toBeUndefined()
  })
})

describe('the text of a message', () => {
  test('has every value in its place, and no unfilled placeholder', () => {
    const { text, templateKey, variables } = render(template('ORDER_DELIVERED'), {
      ...delivered,
      businessName: 'Acme',
    })
    for (const value of ['Ann', 'A-1', '2026-01-31T10:30', 'Acme']) expect(text).toContain(value)
    expect(text).not.toMatch(/[{}]|undefined/)
    expect({ templateKey, variables }).toEqual({
      templateKey: 'ORDER_DELIVERED',
      variables: { ...delivered, businessName: 'Acme' },
    })
  })

  test('keeps a value that looks like a placeholder or a replacement pattern unchanged', () => {
    const { text } = render(template('OUT_FOR_DELIVERY'), {
      customerName: '{{orderId}} $& $1 {{customerName}}',
      orderId: 'A-1',
      businessName: '{{customerName}}',
    })
    expect(text).toContain('{{orderId}} $& $1 {{customerName}}')
    expect(text.match(/A-1/g)).toHaveLength(1)
  })

  const inEnglish = (key: OtpKey) => ({ lang: 'en', text: english[key] })
  const otp = { code: '012345', businessName: 'Acme', lifetimeSeconds: 300, loginId: undefined }

  test('of a code has the brand and the lifetime', () => {
    const rendered = renderOtp(otp, inEnglish('LOGIN_OTP'))
    expect(rendered.templateKey).toBe('LOGIN_OTP')
    expect(rendered.text).toContain('012345')
    expect(rendered.text).toContain('Acme')
    expect(rendered.text).toContain('5 minutes')
    expect(rendered.variables).toMatchObject({ otp: '012345', businessName: 'Acme' })
  })

  test('of a code with a loginId has the loginId', () => {
    const rendered = renderOtp({ ...otp, loginId: 'ann{{otp}}' }, inEnglish('LOGIN_OTP_WITH_ID'))
    expect(rendered.templateKey).toBe('LOGIN_OTP_WITH_ID')
    expect(rendered.text).toContain('ann{{otp}}')
    expect(rendered.variables).toMatchObject({ loginId: 'ann{{otp}}' })
  })

  const lifetimes: readonly (readonly [number, string])[] = [
    [300, '5 minutes'],
    [60, '1 minute'],
    [90, '90 seconds'],
    [1, '1 second'],
    [3600, '60 minutes'],
  ]
  test.each(lifetimes)('describes %d seconds as %s', (seconds, words) => {
    expect(english.lifetime(seconds)).toBe(words)
  })
})
