import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  countryGroup,
  countryName,
  countryRules,
  type Destination,
  type DestinationAction,
  type DestinationRule,
  DestinationRules,
  destinationActions,
  destinationProblem,
  kindInWords,
  parseRule,
} from '../../src/domain/delivery/destination.ts'

function ruleOf(text: string): DestinationRule {
  const [rule = '', action, brandSlug = null] = text.split(' ')
  const known = destinationActions.find((each) => each === action)
  if (!known) throw new Error(`No action in ${text}`)
  return { rule, action: known, brandSlug, providers: [], sender: null, route: null }
}

const rulesOf = (text: string) => text.split(', ').filter(Boolean).map(ruleOf)

const gb: Destination = { country: 'GB', kind: 'ordinary' }
const none: Destination = { country: null, kind: 'ordinary' }
const premium: Destination = { country: 'GB', kind: 'premium-rate' }
const personal: Destination = { country: 'GB', kind: 'personal' }
const uan: Destination = { country: 'GB', kind: 'uan' }
const unknown: Destination = { country: null, kind: 'unknown' }

describe('of destination rules (design D40)', () => {
  const numbers = {
    mobile: ['447400123456', gb],
    freephone: ['80012345678', none],
    costly: ['449012345678', premium],
    personal: ['447012345678', personal],
    uan: ['445551234567', uan],
    unassigned: ['9991234567', unknown],
  } as const
  type Row = readonly [
    rules: string,
    number: keyof typeof numbers,
    brand: string | null,
    action: DestinationAction,
    decidedBy: string,
  ]
  const rows: readonly Row[] = [
    ['', 'mobile', 'acme', 'allow', 'default'],
    ['', 'costly', 'acme', 'block', 'kind'],
    ['', 'personal', 'acme', 'allow', 'default'],
    ['', 'uan', 'acme', 'allow', 'default'],
    ['', 'unassigned', 'acme', 'allow', 'default'],
    ['LV block', 'mobile', 'acme', 'allow', 'default'],
    ['GB block', 'mobile', 'acme', 'block', 'GB block'],
    ['GB monitor', 'mobile', 'acme', 'monitor', 'GB monitor'],
    ['GB allow, * block', 'mobile', 'acme', 'allow', 'GB allow'],
    ['* block, IN allow', 'mobile', 'acme', 'block', '* block'],
    ['GB allow, +4474 block, * monitor', 'mobile', 'acme', 'block', '+4474 block'],
    ['+44 block, +4474 allow, +4475 block', 'mobile', 'acme', 'allow', '+4474 allow'],
    ['+447400123456 block, GB allow', 'mobile', 'acme', 'block', '+447400123456 block'],
    ['+4474001234567 block, GB allow', 'mobile', 'acme', 'allow', 'GB allow'],
    // The brand's rule takes precedence only over an equally specific one.
    ['GB block, GB allow acme', 'mobile', 'acme', 'allow', 'GB allow acme'],
    ['GB block acme, GB allow', 'mobile', 'acme', 'block', 'GB block acme'],
    ['GB block, GB allow acme', 'mobile', 'other', 'block', 'GB block'],
    ['GB block, GB allow acme', 'mobile', null, 'block', 'GB block'],
    ['+44 block, GB allow acme, * allow acme', 'mobile', 'acme', 'block', '+44 block'],
    ['* block, GB allow acme', 'mobile', 'acme', 'allow', 'GB allow acme'],
    ['* block, GB allow acme', 'mobile', 'other', 'block', '* block'],
    ['+4474 block other, +44 allow', 'mobile', 'acme', 'allow', '+44 allow'],
    // A number of no country has no country's rule.
    ['* block, GB allow', 'freephone', 'acme', 'block', '* block'],
    ['LV block', 'freephone', 'acme', 'allow', 'default'],
    ['* block, +800 allow', 'freephone', 'acme', 'allow', '+800 allow'],
    // Numbers of other kinds need a rule of their prefix.
    ['GB allow', 'costly', 'acme', 'block', 'kind'],
    ['* allow', 'costly', 'acme', 'block', 'kind'],
    ['GB allow', 'personal', 'acme', 'block', 'kind'],
    ['GB allow', 'uan', 'acme', 'block', 'kind'],
    ['GB allow, +4470 allow', 'personal', 'acme', 'allow', '+4470 allow'],
    ['LV block other', 'costly', 'acme', 'block', 'kind'],
    ['GB allow, +4490 allow', 'costly', 'acme', 'allow', '+4490 allow'],
    ['+4490 monitor', 'costly', 'acme', 'monitor', '+4490 monitor'],
    ['+4490 block', 'costly', 'acme', 'block', '+4490 block'],
    ['+4490 allow other', 'costly', 'acme', 'block', 'kind'],
    ['* allow', 'unassigned', 'acme', 'block', 'kind'],
    ['+999 allow, * block', 'unassigned', 'acme', 'allow', '+999 allow'],
  ]
  test.each(rows)('%p for a %s number of %p: %s by %s', (rules, number, brand, action, decidedBy) => {
    const [digits, destination] = numbers[number]
    const { rule, reason, ...decision } = new DestinationRules(rulesOf(rules)).decide(
      digits,
      destination,
      brand,
    )
    expect(decision).toEqual({ action })
    expect(rule ? [rule.rule, rule.action, rule.brandSlug].filter(Boolean).join(' ') : reason).toBe(decidedBy)
    expect(reason === 'rule').toBe(rule !== null)
  })

  test('the most specific one that matches decides, in any order', () => {
    const digits = fc.string({ unit: fc.constantFrom('1', '2'), minLength: 1, maxLength: 4 })
    const countries = fc.constantFrom('GB', 'LV')
    const anyRule = fc.record({
      rule: fc.oneof(
        digits.map((prefix) => `+${prefix}`),
        countries,
        fc.constant('*'),
      ),
      brandSlug: fc.constantFrom(null, 'acme', 'other'),
      action: fc.constantFrom(...destinationActions),
      providers: fc.constant([]),
      sender: fc.constant(null),
      route: fc.constant(null),
    })
    const anyRules = fc.uniqueArray(anyRule, { selector: ({ rule, brandSlug }) => `${rule} ${brandSlug}` })
    const anyDestination = fc.record({
      country: fc.option(countries),
      kind: fc.constantFrom('ordinary', 'pager', 'unknown'),
    })
    fc.assert(
      fc.property(anyRules, digits, anyDestination, (rules, number, destination) => {
        const specificity = ({ rule, brandSlug }: DestinationRule) =>
          2 * (rule.startsWith('+') ? rule.length : rule === '*' ? 0 : 1) + (brandSlug ? 1 : 0)
        const [first] = rules
          .filter(({ brandSlug }) => brandSlug !== 'other')
          .filter(({ rule }) =>
            destination.kind === 'ordinary'
              ? rule === '*' || rule === destination.country || `+${number}`.startsWith(rule)
              : `+${number}`.startsWith(rule),
          )
          .sort((a, b) => specificity(b) - specificity(a))
        const isAllowed =
          destination.kind === 'ordinary' || (rules.length === 0 && destination.kind === 'unknown')
        const { action, rule } = new DestinationRules(rules).decide(number, destination, 'acme')
        expect(rule).toBe(first ?? null)
        expect(action).toBe(first?.action ?? (isAllowed ? 'allow' : 'block'))
      }),
      { numRuns: 2000 },
    )
  })

  test('SMS_COUNTRIES allows its countries and blocks the others; a stored rule replaces its rule', () => {
    const actions = (stored: string) => {
      const rules = new DestinationRules([...countryRules(['IN', 'GB']), ...rulesOf(stored)])
      const action = (destination: Destination) => rules.decide('447400123456', destination, 'acme').action
      return { gb: action(gb), lv: action({ country: 'LV', kind: 'ordinary' }), none: action(none) }
    }
    expect(actions('')).toEqual({ gb: 'allow', lv: 'block', none: 'block' })
    expect(actions('GB block')).toEqual({ gb: 'block', lv: 'block', none: 'block' })
    expect(actions('* monitor')).toEqual({ gb: 'allow', lv: 'monitor', none: 'monitor' })
    expect(actions('LV allow acme')).toEqual({ gb: 'allow', lv: 'allow', none: 'block' })
    expect(countryRules([])).toEqual([])
  })
})

describe('the text of a rule', () => {
  const isCountry = (code: string) => ['GB', 'IN'].includes(code)

  test.each([
    ['GB', 'GB'],
    [' gb ', 'GB'],
    ['+4479', '+4479'],
    ['+1', '+1'],
    ['+123456789012345', '+123456789012345'],
    ['*', '*'],
  ])('%p is the rule %s', (text, rule) => {
    expect(parseRule(text, isCountry)).toEqual({ rule })
  })

  const forms =
    'A rule is a country code such as GB, "+" with 1 to 15 digits such as +4479 (no leading 0), or *.'
  test.each([
    ['', forms],
    ['+', forms],
    ['4479', forms],
    ['+44 79', forms],
    ['+1234567890123456', forms],
    ['**', forms],
    ['+44*', forms],
    ['GBR', forms],
    ['uk', `UK is not an ISO 3166-1 country code with telephone numbers. ${forms}`],
  ])('%p is rejected', (text, problem) => {
    expect(parseRule(text, isCountry)).toEqual({ problem })
  })
})

test('the group of GB has Guernsey, Jersey and the Isle of Man; other countries are alone', () => {
  expect(countryGroup('GB')).toEqual(['GB', 'GG', 'JE', 'IM'])
  expect(countryGroup('FI')).toEqual(['FI'])
})

describe('the problem of a blocked number', () => {
  const problem = (rules: string, digits: string, destination: Destination) => {
    const decision = new DestinationRules(rulesOf(rules)).decide(digits, destination, null)
    expect(decision.action).toBe('block')
    return destinationProblem('to[3]', destination, decision)
  }

  test('has its kind, number range or country, and no digits', () => {
    expect(problem('GB allow', '449012345678', premium)).toBe(
      '`to[3]` is a premium-rate number, which this server does not send SMS to.',
    )
    expect(problem('* allow', '9991234567', unknown)).toBe(
      '`to[3]` is a number of no known numbering plan, which this server does not send SMS to. Begin the number with + and the country code.',
    )
    expect(problem('+4474 block', '447400123456', gb)).toBe(
      '`to[3]` is in a number range that this server does not send SMS to.',
    )
    for (const rules of ['GB block', '* block']) {
      expect(problem(rules, '447400123456', gb)).toBe(
        '`to[3]` is in a country that this server does not send SMS to: United Kingdom.',
      )
    }
    expect(problem('* block', '80012345678', none)).toBe(
      '`to[3]` is a number of no country, which this server does not send SMS to.',
    )
  })
})

test('countries and kinds have English names', () => {
  expect(['LV', 'XK', 'AX'].map(countryName)).toEqual(['Latvia', 'Kosovo', 'Åland Islands'])
  expect(kindInWords('ordinary')).toBe('an ordinary number')
  expect(kindInWords('pager')).toBe('a pager number')
})
