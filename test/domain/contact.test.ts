import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { toAsciiDomain } from '../../src/adapters/email/domain.ts'
import * as contact from '../../src/domain/ground/contact.ts'

const { mailboxOf, mask, parseChannel } = contact

const noPlan = ({ digits }: contact.Dialed) => digits
const phone = (raw: unknown) => contact.phone(raw, noPlan)
const email = (raw: unknown) => contact.email(raw, toAsciiDomain)

describe('a channel', () => {
  const rows: readonly (readonly [unknown, 'SMS' | 'EMAIL' | undefined])[] = [
    ['SMS', 'SMS'],
    ['sms', 'SMS'],
    ['sMs', 'SMS'],
    ['EMAIL', 'EMAIL'],
    ['Email', 'EMAIL'],
    ['', undefined],
    ['FAX', undefined],
    ['E-MAIL', undefined],
    // Non-ASCII letters whose upper case is S or I.
    ['\u017fms', undefined],
    ['ema\u0131l', undefined],
    [null, undefined],
    [1, undefined],
    [['SMS'], undefined],
  ]
  test.each(rows)('%p is read as %p', (value, channel) => {
    expect(parseChannel(value)).toBe(channel)
  })
})

describe('a phone number (design D5)', () => {
  const accepted: readonly (readonly [string, string])[] = [
    ['12025550143', '12025550143'],
    ['+1 (202) 555-0143', '12025550143'],
    ['+1.202.555.0143', '12025550143'],
    [' 1202 5550143 ', '12025550143'],
    ['1234567', '1234567'],
    ['123456789012345', '123456789012345'],
    ['0012025550143', '12025550143'],
    ['+0012025550143', '12025550143'],
    ['000012025550143', '12025550143'],
    ['00123456789012345', '123456789012345'],
    ['0123456', '0123456'],
    ['((123)) 45-67', '1234567'],
  ]
  test.each(accepted)('%p is normalized to %s', (raw, digits) => {
    expect(phone(raw)).toEqual({ channel: 'SMS', to: digits })
  })

  const refused: readonly (readonly [string, unknown])[] = [
    ['six digits', '123456'],
    ['six digits behind 00', '00123456'],
    ['only zeros', '0'.repeat(12)],
    ['sixteen digits', '1234567890123456'],
    ['nothing', ''],
    ['no digits', '+-(). '],
    ['letters', '1-800-FLOWERS'],
    ['an extension', '12025550143 x12'],
    ['a comma', '12025550143,12025550144'],
    ['a tab', '1202\t5550143'],
    ['a line break', '12025550143\n'],
    ['a no-break space', '1202\u00a05550143'],
    ['digits of another script', '\u0661\u0662\u0663\u0664\u0665\u0666\u0667\u0668'],
    ['ASCII digits and one of another script', '1202555014\u0663'],
    ['full-width digits', '\uff11\uff12\uff13\uff14\uff15\uff16\uff17'],
    ['a slash', '0202/5550143'],
    ['a number', 12025550143],
    ['nothing given', undefined],
    ['null', null],
    ['an array', ['12025550143']],
  ]
  test.each(refused)('%s fails normalization', (_, raw) => {
    expect(phone(raw)).toBeUndefined()
  })

  test('must have 7 to 15 digits after it was read', () => {
    const read = (raw: string, to: string) => contact.phone(raw, () => to)?.to
    expect(read('0123456', '44123456')).toBe('44123456')
    expect(read('0123456789012345', '441234567')).toBe('441234567')
    expect(read('12025550143', '')).toBeUndefined()
    expect(read('1'.repeat(21), '441234567')).toBeUndefined()
    expect(read('letters', '441234567')).toBeUndefined()
  })
})

describe('an e-mail address (design D6)', () => {
  const long = `${'a'.repeat(64)}@${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(61)}`
  const accepted: readonly (readonly [string, string])[] = [
    ['ann@example.com', 'ann@example.com'],
    ['  Ann.Lee+shop@Example.COM\n', 'ann.lee+shop@example.com'],
    ['ann@localhost', 'ann@localhost'],
    ['ann@example.com.', 'ann@example.com'],
    ['ann@9-9.example', 'ann@9-9.example'],
    ['ann@1.2.3', 'ann@1.2.3'],
    ['ann@\uff11.2.3', 'ann@1.2.3'],
    ['re\u0301ne\u0301@example.com', 'r\u00e9n\u00e9@example.com'],
    ['R\u00c9N\u00c9@example.com', 'r\u00e9n\u00e9@example.com'],
    // Its lower case is two characters, which NFC composes.
    ['\u0130\u0316nes@example.com', 'i\u0316\u0307nes@example.com'],
    ["o'brien!#$%&*/=?^_`{|}~-@example.com", "o'brien!#$%&*/=?^_`{|}~-@example.com"],
    [`${'\u00e9'.repeat(32)}@example.com`, `${'\u00e9'.repeat(32)}@example.com`],
    // Spellings of one domain.
    ['ann@example\u3002com', 'ann@example.com'],
    ['ann@example\uff0ecom', 'ann@example.com'],
    ['ann@example\uff61com\u3002', 'ann@example.com'],
    ['ann@\uff45xample.com', 'ann@example.com'],
    ['ann@\uff25\uff38AMPLE.com', 'ann@example.com'],
    ['ann@\u{1d41e}xample.com', 'ann@example.com'],
    ['ann@b\u00fccher.example', 'ann@xn--bcher-kva.example'],
    ['ann@BU\u0308CHER.example', 'ann@xn--bcher-kva.example'],
    ['ann@xn--bcher-kva.example', 'ann@xn--bcher-kva.example'],
    ['ann@XN--BCHER-KVA.Example.', 'ann@xn--bcher-kva.example'],
    [long, long],
  ]
  test.each(accepted)('%p is normalized to %p', (raw, to) => {
    expect(email(raw)).toEqual({ channel: 'EMAIL', to })
  })

  test('does not change when it is normalized again', () => {
    const part = fc.string({ unit: 'binary', maxLength: 12 })
    const word = fc.string({
      unit: fc.constantFrom(...'aA9.-_\u00dc\u0130\u03a3\u00ad\u3002\uff0e\uff21\u212axn--'),
      maxLength: 12,
    })
    fc.assert(
      fc.property(fc.oneof(part, word), fc.oneof(part, word), (local, domain) => {
        const to = email(`${local}@${domain}`)?.to
        if (to !== undefined) expect(email(to)?.to).toBe(to)
      }),
      { numRuns: 2000 },
    )
  })

  const refused: readonly (readonly [string, unknown])[] = [
    ['nothing', ''],
    ['no @', 'ann.example.com'],
    ['two @', 'ann@lee@example.com'],
    ['nothing before the @', '@example.com'],
    ['nothing behind the @', 'ann@'],
    ['255 characters', `${long}d`],
    ['a local part of 65 octets', `${'a'.repeat(65)}@example.com`],
    ['a local part of 33 characters in 66 octets', `${'\u00e9'.repeat(33)}@example.com`],
    ['a label of 64 characters', `ann@${'b'.repeat(64)}.com`],
    ['a doubled dot before the @', 'a..b@c.example'],
    ['a leading dot', '.ann@example.com'],
    ['a trailing dot before the @', 'ann.@example.com'],
    ['a doubled dot in the domain', 'ann@example..com'],
    ['a doubled full-width dot in the domain', 'ann@example\u3002\uff0ecom'],
    ['two trailing dots', 'ann@example.com..'],
    ['a domain that begins with a dot', 'ann@.example.com'],
    ['a domain of a dot', 'ann@.'],
    ['an underscore in the domain', 'a@b_c.d'],
    ['an underscore in a domain of other letters', 'a@b\u00fc_c.d'],
    ['a full-width underscore', 'a@b\uff3fc.d'],
    ['a label that begins with a hyphen', 'ann@-example.com'],
    ['a label that ends with a hyphen', 'ann@example-.com'],
    ['a percent sign in the domain', 'ann@ex%61mple.com'],
    ['a percent sign in a domain of other letters', 'ann@b\u00fc%61.com'],
    ['a full-width percent sign', 'ann@ex\uff0561mple.com'],
    ['a port', 'ann@example.com:25'],
    ['a full-width port', 'ann@example.com\uff1a25'],
    ['a path', 'ann@b\u00fc/c.example'],
    ['a full-width slash', 'ann@b\uff0fc.example'],
    ['a full-width @ in the domain', 'ann@lee\uff20example.com'],
    ['a soft hyphen in the domain', 'ann@exam\u00adple.com'],
    ['Punycode of nothing', 'ann@xn--a.example'],
    ['Punycode of plain letters', 'ann@xn--example-.com'],
    ['an IP address', 'ann@[192.0.2.1]'],
    ['a space', 'ann lee@example.com'],
    ['a line break inside', 'ann@example.com\nbcc:eve@example.com'],
    ['a carriage return inside', 'ann\r@example.com'],
    ['a control character', 'ann\u0000@example.com'],
    ['an invisible character', 'ann\u200b@example.com'],
    ['half of a surrogate pair', 'ann\ud800@example.com'],
    ['a list', 'ann@example.com,eve'],
    ['a list that hides its second @', 'ann@example.com;eve'],
    ['a name', 'Ann<ann@example.com>'],
    ['a full-width @ for the @', 'ann\uff20example.com'],
    ['a number', 1],
    ['nothing given', undefined],
    ['null', null],
    ['an array', ['ann@example.com']],
  ]
  test.each(refused)('%s fails normalization', (_, raw) => {
    expect(email(raw)).toBeUndefined()
  })
})

describe('a mailbox (design D6)', () => {
  const rows: readonly (readonly [string, string])[] = [
    ['ann@example.com', 'ann@example.com'],
    ['Ann+Shop@Example.com', 'ann@example.com'],
    ['ann+a+b@example.com', 'ann@example.com'],
    ['ann+@example.com', 'ann@example.com'],
    ['+ann@example.com', '@example.com'],
  ]
  test.each(rows)('of %s is %s', (raw, mailbox) => {
    const recipient = email(raw)
    expect(recipient && mailboxOf(recipient)).toBe(mailbox)
  })
})

describe('a recipient in the log', () => {
  const rows: readonly (readonly [string, string])[] = [
    ['12025550143', '12*******43'],
    ['1234567', '12***67'],
    ['Ann.Lee@example.com', 'a***@example.com'],
    ['a@example.com', 'a***@example.com'],
  ]
  test.each(rows)('%s is masked as %s', (raw, masked) => {
    const recipient = phone(raw) ?? email(raw)
    expect(recipient && mask(recipient)).toBe(masked)
  })
})
