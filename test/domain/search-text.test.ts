import { expect, test } from 'bun:test'
import { providerCodes } from '../../src/adapters/sms/index.ts'
import { explainedCodes } from '../../src/domain/delivery/provider-codes.ts'
import { keysEnding, readSearchText } from '../../src/domain/operator/search-text.ts'

test.each([
  ['otp_live_abcdefgh1234', { isKey: true }],
  ['key: otp_live_abcdefgh1234', { isKey: true }],
  ['aB3_', { lastFour: 'aB3_' }],
  ['…aB3x', { lastFour: 'aB3x' }],
  ['+371 2000', { prefix: '3712000' }],
  ['(202) 555-0143', { national: '2025550143' }],
  ['+12025550143', {}],
  ['21610', { national: '21610' }],
  ['Acme Inc', {}],
])('%p is read as %j', (text, expected) => {
  const { isKey, ...others } = readSearchText(text)
  const given = Object.entries(others).filter(([, value]) => value !== undefined)
  expect<object>({ ...(isKey ? { isKey } : {}), ...Object.fromEntries(given) }).toEqual({ ...expected })
})

test('finds keys by their end, also revoked ones', () => {
  const key = (lastFour: string, revokedAt: number | null) => ({
    lastFour,
    revokedAt,
    createdAt: 1,
    lastUsedAt: null,
    lastUsedFrom: null,
  })
  const app = (appId: string, ...keys: readonly ReturnType<typeof key>[]) => ({
    appId,
    createdAt: 1,
    revokedAt: null,
    keys,
  })
  const apps = [app('shop', key('aaaa', null), key('bbbb', 2)), app('web', key('bbbb', null))]
  expect(keysEnding('bbbb', apps)).toEqual([
    { appId: 'shop', key: key('bbbb', 2) },
    { appId: 'web', key: key('bbbb', null) },
  ])
})

test.each([
  [
    '21610',
    'twilio 21610: The phone number cannot receive this SMS. https://www.twilio.com/docs/api/errors/21610',
  ],
  ...['30003', 'twilio 30003', ' Twilio 30003'].map((text) => [
    text,
    'twilio 30003: The phone number cannot receive this SMS. https://www.twilio.com/docs/api/errors/30003',
  ]),
  [
    'vonage 9',
    'vonage status 9: The provider rejects the account. https://developer.vonage.com/messaging/sms/guides/troubleshooting-sms',
  ],
  ['20003', 'twilio 20003: The provider rejects the account. https://www.twilio.com/docs/api/errors/20003'],
  [
    'status 9',
    'vonage status 9: The provider rejects the account. https://developer.vonage.com/messaging/sms/guides/troubleshooting-sms',
  ],
  ['418', 'msg91 code 418: The provider rejects the account.'],
  [
    'throttlingexception',
    'sns ThrottlingException: The provider could not accept the message at that time. https://docs.aws.amazon.com/sns/latest/api/CommonErrors.html',
  ],
  [
    'err 633',
    'DLT err 633: Carriers in India did not deliver the message: the text differs from the registered template.',
  ],
])('explains %p', (text, expected) => {
  const [first] = explainedCodes(text, providerCodes)
  expect(
    [`${first?.provider} ${first?.code}: ${first?.meaning}`, first?.page].filter(Boolean).join(' '),
  ).toBe(expected)
})

test('explains no other text', () => {
  expect(['acme', '', '12025550143'].flatMap((text) => explainedCodes(text, providerCodes))).toEqual([])
})
