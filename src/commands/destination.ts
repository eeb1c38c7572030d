import { Argument, type Command, Option } from 'commander'
import type { Context } from '../context.ts'
import {
  countryWords,
  type DestinationRule,
  destinationActions,
  kindInWords,
} from '../domain/delivery/destination.ts'
import { existingBrand } from '../domain/operator/brands.ts'
import {
  checkDestination,
  decisionWords,
  listedRules,
  type RequestedRule,
  removeDestination,
  ruleName,
  ruleWords,
  setDestination,
  smsRouteNames,
} from '../domain/operator/destinations.ts'
import { dryRunOf } from '../domain/operator/dry-run.ts'
import { guardEntryOf, guardWords } from '../domain/operator/guard.ts'
import {
  codesTo,
  complain,
  type DryRunOptions,
  dryRunOption,
  type Env,
  list,
  nothingChanged,
  phoneDigits,
  policyPorts,
  print,
  printTable,
  several,
  withContext,
} from './common.ts'

interface RuleOptions {
  brand?: string
  group?: true
}

interface SetOptions extends RuleOptions, DryRunOptions {
  providers?: readonly string[]
  sender?: string
  route?: string
}

const ruleMeaning = 'a country such as GB, a prefix such as +4479, or * for all other numbers'

export function destinationCommands(program: Command, env: Env): void {
  const destination = program
    .command('destination')
    .description('decide which countries and number ranges SMS may go to, and how')
  destination
    .command('set')
    .description('create or replace the rule of a country or number range')
    .argument('<rule>', ruleMeaning)
    .addArgument(
      new Argument(
        '<action>',
        'what otpost does with SMS to these numbers: send them, reject them with 400 validation_error, or send them and record what block would reject (monitor)',
      ).choices(destinationActions),
    )
    .option('--brand <slug>', 'only for SMS of this brand')
    .option(
      '--providers <names>',
      `only these providers of SMS_PLAIN and SMS_TEMPLATE, tried in this order; ${several}`,
      list,
    )
    .option('--sender <sender>', 'the sender: a number with +, a short code or a sender id')
    .addOption(
      new Option(
        '--route <route>',
        'the route of codes and templates: plain (direct) or template (registered, DLT)',
      ).choices(smsRouteNames),
    )
    .option('--group', 'also for the territories in its numbering plan: GB with GG, JE and IM')
    .addOption(dryRunOption())
    .addHelpText(
      'after',
      '\nThe command replaces the whole rule: options that you leave out are removed from it. It reads SMS_PLAIN,\nSMS_TEMPLATE, OTP_SMS_MODE and SMS_COUNTRIES, so run it with the settings of the server.',
    )
    .action((rule: string, action: string, options: SetOptions) =>
      withContext(env, async (context) => {
        const { providers = [], sender = null, route = null } = options
        const { readDestinationConfig } = await import('../config/destinations.ts')
        const asked = { ...requestedRule(rule, options), action, providers, sender, route }
        const changing = await policyPorts(context, env)
        const ports = options.dryRun ? dryRunOf(changing) : changing
        const { rules, warnings } = await setDestination(ports, asked, readDestinationConfig(env))
        for (const each of rules) print(`${ruleName(each)}: ${ruleWords(each)}.`)
        if (options.dryRun) for (const line of await effectLines(context, rules)) print(line)
        for (const warning of warnings) complain(warning)
      }),
    )
  destination
    .command('remove')
    .description('remove the rule of a country or number range')
    .argument('<rule>', ruleMeaning)
    .option('--brand <slug>', 'the rule of this brand')
    .option('--group', 'also the rules of the territories in its numbering plan')
    .action((rule: string, options: RuleOptions) =>
      withContext(env, async (context) => {
        const removed = await removeDestination(await policyPorts(context, env), requestedRule(rule, options))
        for (const each of removed) print(`Removed the rule ${ruleName(each)}.`)
      }),
    )
  destination
    .command('list')
    .description('list the rules, including those of SMS_COUNTRIES')
    .option('--json', 'print a JSON array')
    .action((options: { json?: true }) =>
      withContext(env, async ({ policy }) => {
        const { readDestinationConfig } = await import('../config/destinations.ts')
        const { rules } = await policy.rows()
        const listed = listedRules(readDestinationConfig(env).smsCountries, rules)
        if (listed.length === 0 && !options.json) {
          complain(
            'There are no rules: SMS go to every country, except to premium-rate, shared-cost, pager and satellite numbers.',
          )
          return
        }
        const rows = listed.map(({ rule, brandSlug, ...rest }) => ({ rule, brand: brandSlug, ...rest }))
        printTable(options.json, rows, [
          ['RULE', (row) => row.rule],
          ['BRAND', (row) => row.brand ?? '-'],
          ['ACTION', (row) => row.action],
          ['PROVIDERS', (row) => row.providers.join(',') || '-'],
          ['SENDER', (row) => row.sender ?? '-'],
          ['ROUTE', (row) => row.route ?? '-'],
          ['SOURCE', (row) => row.source],
        ])
      }),
    )
  destination
    .command('check')
    .description(
      'print what the rules and the prefixes of the guard decide about a phone number; exits with status 0 for a blocked number too',
    )
    .argument('<number>', 'a phone number as in API requests')
    .option('--brand <slug>', 'with the rules of this brand')
    .option('--json', 'print JSON')
    .action((number: string, options: { brand?: string; json?: true }) => printCheck(env, number, options))
}

/** What `destination set` would replace, and what went to the countries of the rules. */
async function effectLines(
  { policy, guardReader, now }: Context,
  rules: readonly DestinationRule[],
): Promise<readonly string[]> {
  const { countryOfPrefix } = await import('../adapters/phone/destination.ts')
  const stored = (await policy.rows()).rules
  const replaced = rules.flatMap(({ rule, brandSlug }) =>
    stored.filter((each) => each.rule === rule && each.brandSlug === brandSlug),
  )
  const codes = await guardReader.countries(now())
  const countries = rules.flatMap(({ rule }) =>
    rule === '*' ? codes.map(({ country }) => country) : (countryOf(rule, countryOfPrefix) ?? []),
  )
  return [
    ...replaced.map((each) => `It would replace ${ruleName(each)}: ${ruleWords(each)}.`),
    codesTo(codes, countries),
    nothingChanged,
  ]
}

function countryOf(rule: string, countryOfPrefix: (digits: string) => string | null): string | null {
  return rule.startsWith('+') ? countryOfPrefix(rule.slice(1)) : rule
}

async function printCheck(
  env: Env,
  number: string,
  { brand, json }: { brand?: string; json?: true },
): Promise<void> {
  const [{ destinationOf }, { formatPhone }, { readDestinationConfig }, { readGuardConfig }] =
    await Promise.all([
      import('../adapters/phone/destination.ts'),
      import('../adapters/phone/format.ts'),
      import('../config/destinations.ts'),
      import('../config/guard.ts'),
    ])
  await withContext(env, async ({ policy, brands, guardReader, now }, { contacts }) => {
    const digits = phoneDigits(contacts, number)
    const brandSlug = brand === undefined ? null : await existingBrand(brands, brand)
    const rules = listedRules(readDestinationConfig(env).smsCountries, (await policy.rows()).rules)
    const { country, kind, decision } = checkDestination(destinationOf, digits, brandSlug, rules)
    const { action, rule, reason } = decision
    const entry = guardEntryOf(digits, await guardReader.prefixes(), now())
    const guard = entry ? guardWords(entry, readGuardConfig(env).mode) : null
    if (json) {
      const { providers = [], sender = null, route = null } = rule ?? {}
      const about = { number: `+${digits}`, country, kind, action, rule: rule?.rule ?? null }
      print(
        JSON.stringify({ ...about, brand: rule?.brandSlug ?? null, reason, route, providers, sender, guard }),
      )
      return
    }
    print(`${formatPhone(digits)}: ${countryWords(country)}, ${kindInWords(kind)}.`)
    print(decisionWords(decision))
    if (rule && action !== 'block') print(`Rule ${ruleName(rule)}: ${ruleWords(rule)}.`)
    if (guard !== null) print(guard)
  })
}

function requestedRule(
  rule: string,
  { brand = null, group = false }: { brand?: string | null; group?: boolean },
): RequestedRule {
  return { rule, brand, isGroup: group }
}
