import { describe, expect, test } from 'bun:test'
import { email, mailboxOf, mask, parseChannel, phone } from '../../src/domain/contact.ts'

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
    // Letters of other alphabets whose capitals are S and I.
    ['\u017fms', undefined],
    ['ema\u0131l', undefined],
    [null, undefined],
    [1, undefined],
    [['SMS'], undefined],
  ]
  test.each(rows)('%p is %p', (value, channel) => {
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
    ['0012025550143', '0012025550143'],
    ['((123)) 45-67', '1234567'],
  ]
  test.each(accepted)('%p is %s', (raw, digits) => {
    expect(phone(raw)).toEqual({ channel: 'SMS', address: digits, identity: digits })
  })

  const refused: readonly (readonly [string, unknown])[] = [
    ['six digits', '123456'],
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

  test('what counts is the number after the national form was read', () => {
    const nationalize = (raw: string) => raw.replace(/^0/, '44')
    expect(phone('0123456', nationalize)?.address).toBe('44123456')
    expect(phone('0123456789012345', () => '441234567')?.address).toBe('441234567')
    expect(phone('12025550143', () => '')).toBeUndefined()
    expect(phone('letters', () => '441234567')).toBeUndefined()
  })
})

describe('a mail address (design D6)', () => {
  const long = `${'a'.repeat(254 - '@example.com'.length)}@example.com`
  const accepted: readonly (readonly [string, string, string])[] = [
    ['ann@example.com', 'ann@example.com', 'ann@example.com'],
    ['  Ann.Lee+shop@Example.COM\n', 'Ann.Lee+shop@Example.COM', 'ann.lee+shop@example.com'],
    ['ann@localhost', 'ann@localhost', 'ann@localhost'],
    ['re\u0301ne\u0301@example.com', 'r\u00e9n\u00e9@example.com', 'r\u00e9n\u00e9@example.com'],
    ['R\u00c9N\u00c9@example.com', 'R\u00c9N\u00c9@example.com', 'r\u00e9n\u00e9@example.com'],
    [
      "o'brien!#$%&*/=?^_`{|}~-@example.com",
      "o'brien!#$%&*/=?^_`{|}~-@example.com",
      "o'brien!#$%&*/=?^_`{|}~-@example.com",
    ],
    [long, long, long],
  ]
  test.each(accepted)('%p is sent to %p and known as %p', (raw, address, identity) => {
    expect(email(raw)).toEqual({ channel: 'EMAIL', address, identity })
  })

  const refused: readonly (readonly [string, unknown])[] = [
    ['nothing', ''],
    ['no @', 'ann.example.com'],
    ['two @', 'ann@lee@example.com'],
    ['nothing before the @', '@example.com'],
    ['nothing behind the @', 'ann@'],
    ['255 characters', `a${long}`],
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

describe('a recipient in a log', () => {
  const rows: readonly (readonly [string, string])[] = [
    ['12025550143', '12*******43'],
    ['1234567', '12***67'],
    ['Ann.Lee@example.com', 'A***@example.com'],
    ['a@example.com', 'a***@example.com'],
  ]
  test.each(rows)('%s is %s', (raw, masked) => {
    const recipient = phone(raw) ?? email(raw)
    expect(recipient && mask(recipient)).toBe(masked)
  })
})
