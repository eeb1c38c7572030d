import type { Command } from 'commander'
import { countryWords, kindInWords } from '../domain/delivery/destination.ts'
import { modeInForce } from '../domain/guard/mode.ts'
import { existingBrand } from '../domain/operator/brands.ts'
import {
  checkDestination,
  decisionWords,
  destinationGroup,
  listedRules,
  ruleName,
  ruleWords,
} from '../domain/operator/destinations.ts'
import { guardEntryOf, guardWords } from '../domain/operator/guard.ts'
import { groupCommand } from './actions.ts'
import { type Env, phoneDigits, print, withContext } from './common.ts'

export function destinationCommands(program: Command, env: Env): void {
  groupCommand(program, destinationGroup)
    .command('check')
    .description('print what the rules and the guard decide about a phone number')
    .argument('<number>', 'a phone number as in API requests')
    .option('--brand <slug>', 'with the rules of this brand')
    .option('--json', 'print JSON')
    .action((number: string, options: { brand?: string; json?: true }) => printCheck(env, number, options))
}

async function printCheck(
  env: Env,
  number: string,
  { brand, json }: { brand?: string; json?: true },
): Promise<void> {
  const [{ destinationOf }, { formatPhone }, { readDestinationConfig }] = await Promise.all([
    import('../adapters/phone/destination.ts'),
    import('../adapters/phone/format.ts'),
    import('../config/destinations.ts'),
  ])
  await withContext(env, async ({ policy, brands, guardReader, now }, { contacts }) => {
    const digits = phoneDigits(contacts, number)
    const brandSlug = brand === undefined ? null : await existingBrand(brands, brand)
    const config = readDestinationConfig(env)
    const { rules: stored, guardMode } = await policy.rows()
    const rules = listedRules(config.smsCountries, stored)
    const { country, kind, decision } = checkDestination(destinationOf, digits, brandSlug, rules)
    const { action, rule, reason } = decision
    const entry = guardEntryOf(digits, await guardReader.prefixes(), now())
    const guard = entry ? guardWords(entry, modeInForce(guardMode, config.guard, now()).mode) : null
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
