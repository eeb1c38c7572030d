import { afterAll, describe, expect, test } from 'bun:test'
import { getCountries, getCountryCallingCode } from 'libphonenumber-js/max'
import examples from 'libphonenumber-js/mobile/examples'
import { countryOfPrefix, destinationOf } from '../../src/adapters/phone/destination.ts'
import { isRegion } from '../../src/adapters/phone/e164.ts'
import { mobileCountryOf } from '../../src/domain/delivery/destination.ts'
import {
  destinationRemove,
  destinationSet,
  effectWords,
  listedRules,
  type RouteSettings,
} from '../../src/domain/operator/destinations.ts'
import type { Entered } from '../../src/domain/operator/fields.ts'
import { createTestApp } from '../support/app.ts'
import { tester } from '../support/operator.ts'

const service = await createTestApp()
afterAll(() => service.close())
const { brands, policy, audit, acting } = service.app.context
const ports = { ...acting(tester), brands, isCountry: isRegion }

const settings: Readonly<Record<string, RouteSettings>> = {
  plain: { smsMode: 'plain', plain: ['twilio', 'kannel'], template: [], others: {} },
  hybrid: { smsMode: 'hybrid', plain: ['twilio', 'kannel'], template: ['msg91', 'kannel'], others: {} },
  ways: {
    smsMode: 'plain',
    plain: ['twilio'],
    template: [],
    others: { whatsapp: ['whatsapp'], voice: ['twilio-voice'] },
  },
}

/** @param options such as `--providers twilio,kannel --brand acme --group` */
function requested(rule: string, action: string, options = ''): Entered {
  const value = (name: string) => new RegExp(`--${name} (\\S+)`).exec(options)?.[1]
  return {
    rule,
    action,
    brand: value('brand'),
    providers: value('providers'),
    sender: value('sender'),
    route: value('route'),
    isGroup: options.includes('--group'),
  }
}

async function set(asked: Entered, mode = 'plain', smsCountries: readonly string[] = ['IN']) {
  const { [mode]: routes } = settings
  if (!routes) throw new Error(mode)
  const routing = async () => ({ routes, smsCountries })
  return destinationSet.perform({ ...ports, routing, countryOfPrefix, smsOfWeek: async () => [] }, asked)
}

const remove = (asked: Entered) => destinationRemove.perform(ports, asked)

describe('destination set (design D40)', () => {
  test('names providers of other ways too', async () => {
    const { warnings } = await set(requested('AE', 'allow', '--providers twilio,whatsapp'), 'ways')
    expect((await policy.rows()).rules.at(-1)).toMatchObject({
      rule: 'AE',
      providers: ['twilio', 'whatsapp'],
    })
    await remove(requested('AE', ''))
    expect(JSON.stringify(warnings)).not.toContain('SMS of that route')
    await expect(set(requested('AE', 'allow', '--providers telegram'), 'ways')).rejects.toThrow(
      'telegram is not a provider of this server. Add it to SMS_PLAIN, or use twilio, whatsapp, twilio-voice.',
    )
  })

  test('stores, replaces and removes the whole rule, each with its audit entry', async () => {
    await set(requested('gb', 'allow', '--providers twilio,twilio --sender Acme'))
    await set(requested('GB', 'block', '--brand ACME --group'))
    await set(requested(' GB ', 'monitor'))
    await set(requested('GB', 'monitor'))
    const all = { providers: [], sender: null, route: null }
    const ofBrand = (rule: string) => ({ ...all, rule, brandSlug: 'acme', action: 'block' as const })
    const gb = { ...all, rule: 'GB', brandSlug: null, action: 'monitor' as const }
    const { rules } = await policy.rows()
    expect(rules).toHaveLength(5)
    expect(rules).toEqual(expect.arrayContaining([gb, ...['GB', 'GG', 'JE', 'IM'].map(ofBrand)]))
    await remove({ rule: 'GB', brand: 'acme', isGroup: true })
    expect((await policy.rows()).rules).toEqual([gb])
    await remove({ rule: 'GB', isGroup: false })
    await expect(remove({ rule: 'GB', isGroup: false })).rejects.toThrow(/no rule GB for all brands/)
    const entries = (await audit.list({ limit: 5 })).map(({ action, target, details }) => [
      action,
      target,
      details.brand ?? '',
      details.GB,
    ])
    expect(entries).toEqual([
      ['destination.removed', 'GB', '', 'monitor → -'],
      ['destination.removed', 'GB, GG, JE, IM', 'acme', 'block → -'],
      ['destination.set', 'GB', '', 'allow, providers twilio, sender Acme → monitor'],
      ['destination.set', 'GB, GG, JE, IM', 'acme', '- → block'],
      ['destination.set', 'GB', '', '- → allow, providers twilio, sender Acme'],
    ])
  })

  test.each<[string, string, string, string, RegExp]>([
    ['XX', 'allow', '', 'plain', /XX is not an ISO 3166-1 country code/],
    ['44', 'allow', '', 'plain', /A rule is a country code/],
    ['GB', 'deny', '', 'plain', /allow, monitor, block/],
    ['GB', 'allow', '--route direct', 'plain', /plain, template/],
    ['GB', 'allow', '--brand nobody', 'plain', /Brand nobody does not exist/],
    ['IN', 'allow', '--group', 'plain', /Only GB has a group/],
    [
      'GB',
      'allow',
      '--providers msg91',
      'plain',
      /msg91 is not a provider of this server\. Add it to SMS_PLAIN,/,
    ],
    [
      'GB',
      'allow',
      '--providers vonage,sns',
      'hybrid',
      /^vonage .* SMS_PLAIN or SMS_TEMPLATE, .*\nsns is not/,
    ],
    ['GB', 'allow', '--route template', 'plain', /OTP_SMS_MODE is plain/],
    ['GB', 'allow', '--route template --providers twilio', 'hybrid', /None of twilio is in SMS_TEMPLATE/],
    ['GB', 'allow', '--route plain --providers msg91', 'hybrid', /None of msg91 is in SMS_PLAIN/],
    ['GB', 'allow', '--sender Acme-Limited', 'plain', /The sender must be/],
    ['GB', 'allow', '--sender +12', 'plain', /The sender must be/],
    ['GB', 'allow', '--sender -Acme', 'plain', /The sender must be/],
  ])('refuses %s %s %s in mode %s', async (rule, action, options, mode, problem) => {
    await expect(set(requested(rule, action, options), mode)).rejects.toThrow(problem)
    expect((await policy.rows()).rules).toEqual([])
  })

  test.each<[string, string, string, string, readonly string[], readonly RegExp[]]>([
    ['IN', 'allow', '', 'plain', [], [/Countries without a rule are allowed too/]],
    ['IN', 'allow', '', 'plain', ['GB'], []],
    ['*', 'allow', '', 'plain', [], []],
    ['EH', 'block', '', 'plain', [], [/EH have the country MA/]],
    ['GB', 'allow', '--providers msg91', 'hybrid', ['GB'], [/None of msg91 is in SMS_PLAIN/]],
    ['GB', 'allow', '--providers kannel --route template', 'hybrid', ['GB'], []],
    ['US', 'block', '--sender +12025550123', 'hybrid', [], []],
    ['US', 'allow', '--providers twilio,whatsapp,twilio-voice', 'ways', ['US'], []],
    ['US', 'block', '--providers twilio', 'ways', ['US'], []],
    [
      'US',
      'monitor',
      '--providers twilio',
      'ways',
      ['US'],
      [/no code to US uses whatsapp or voice\. Add whatsapp and twilio-voice to its providers/],
    ],
    [
      'US',
      'allow',
      '--providers whatsapp',
      'ways',
      ['US'],
      [/so SMS of that route to US fail\. Codes can use whatsapp\.$/, /no code to US uses voice/],
    ],
    ['US', 'block', '--sender 24273', 'hybrid', [], []],
    ['US', 'block', `--sender MG${'0a'.repeat(16)}`, 'hybrid', [], []],
  ])(
    '%s %s %s in mode %s with SMS_COUNTRIES=%j',
    async (rule, action, options, mode, countries, expected) => {
      const { warnings = [] } = await set(requested(rule, action, options), mode, countries)
      expect(warnings.map(({ text }) => text)).toEqual(
        expected.map((pattern) => expect.stringMatching(pattern)),
      )
      await remove(requested(rule, action, options))
    },
  )
})

test('a stored rule replaces that of SMS_COUNTRIES for all brands only', () => {
  const stored = { brandSlug: null, action: 'block', providers: [], sender: null, route: null } as const
  const rules = [
    { ...stored, rule: 'GB' },
    { ...stored, rule: 'IN', brandSlug: 'acme' },
  ]
  const listed = listedRules(['GB', 'IN'], rules)
  expect(listed.map(({ rule, brandSlug, source }) => [rule, brandSlug, source])).toEqual([
    ['IN', null, 'SMS_COUNTRIES'],
    ['*', null, 'SMS_COUNTRIES'],
    ['GB', null, 'stored'],
    ['IN', 'acme', 'stored'],
  ])
})

describe('what a rule would have meant for the last 7 days', () => {
  const week = [
    { country: 'UZ', sent: 1204, verified: 31, notifications: 1 },
    { country: 'GB', sent: 300, verified: 280, notifications: 20 },
  ]
  const others = [{ rule: 'GB' }]
  test.each([
    [
      'UZ',
      'block',
      null,
      'it would have rejected 1,204 codes by SMS, 31 of them verified, and 1 notification.',
    ],
    ['UZ', 'monitor', null, 'it would have recorded 1,204 codes by SMS, 31 of them verified'],
    ['GB', 'allow', null, 'it allows 300 codes by SMS, 280 of them verified, and 20 notifications.'],
    ['*', 'block', null, 'it would have rejected 1,204 codes by SMS'],
    [
      '+99890',
      'block',
      null,
      'The figures are of all numbers of Uzbekistan, of which the prefix has a part.',
    ],
    ['UZ', 'block', 'acme', 'The figures are of all brands, of which acme has a part.'],
    ['FR', 'block', null, 'No SMS went there in the last 7 days.'],
    ['+1', 'block', null, 'The digits do not decide which country the numbers are in.'],
  ] as const)('%s %s %s', (rule, action, brandSlug, words) => {
    expect(effectWords({ rule, action, brandSlug }, week, others, countryOfPrefix)).toContain(words)
  })
})

test('the territories whose mobile numbers have the code of another country', () => {
  const shared = getCountries().flatMap((territory) => {
    const { country } = destinationOf(getCountryCallingCode(territory) + examples[territory])
    return country === territory ? [] : [[territory, country ?? undefined]]
  })
  // The other mobile numbers of the Isle of Man have its own code.
  const others = shared.filter(([territory]) => territory !== 'IM')
  expect(others.length).toBeGreaterThan(5)
  expect(others).toEqual(others.map(([territory]) => [territory, mobileCountryOf(String(territory))]))
})
