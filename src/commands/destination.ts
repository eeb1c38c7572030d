import type { Command } from 'commander'
import { countryWords, kindInWords } from '../domain/delivery/destination.ts'
import { existingBrand } from '../domain/operator/brands.ts'
import {
  checkDestination,
  decisionWords,
  destinationGroup,
  ruleName,
  ruleWords,
} from '../domain/operator/destinations.ts'
import { groupCommand } from './actions.ts'
import { destinationConfig, type Env, phoneDigits, print, withContext } from './common.ts'

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
  const { numbers } = await import('../adapters/phone/numbers.ts')
  await withContext(env, async (context, { contacts }) => {
    const digits = phoneDigits(contacts, number)
    const brandSlug = brand === undefined ? null : await existingBrand(context.brands, brand)
    const ports = { ...context, ...numbers, guard: context.guardReader }
    const checked = await checkDestination(ports, await destinationConfig(env), digits, brandSlug)
    const { country, kind, decision, guard, leftOut } = checked
    const { action, rule, reason } = decision
    if (json) {
      const { providers = [], sender = null, route = null } = rule ?? {}
      const about = { number: `+${digits}`, country, kind, action, rule: rule?.rule ?? null }
      print(
        JSON.stringify({ ...about, brand: rule?.brandSlug ?? null, reason, route, providers, sender, guard }),
      )
      return
    }
    print(`${numbers.formatPhone(digits)}: ${countryWords(country)}, ${kindInWords(kind)}.`)
    print(decisionWords(decision))
    if (rule && action !== 'block') print(`Rule ${ruleName(rule)}: ${ruleWords(rule)}.`)
    if (leftOut !== null) print(leftOut)
    if (guard !== null) print(guard)
  })
}
