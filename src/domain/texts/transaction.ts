import { isObject } from '../ground/body.ts'
import { invalidField } from '../ground/failures.ts'
import { remembered } from '../ground/remember.ts'
import { currencies, type IsTopLevelDomain } from '../ground/words.ts'
import { formatted, readValue, textRule, type VariableRule } from './variables.ts'

/** What a code confirms (design D55). Transactions are equal if their parts are. */
export interface NamedTransaction {
  /** Decimal, without zeros that do not change its value: `10.5`. */
  readonly amount: string
  /** ISO 4217. */
  readonly currency: string
  readonly payee: string
}

/** All are required. */
export const transactionRules = {
  amount: {
    name: 'amount',
    type: 'text',
    description: 'a decimal string of at most 12 digits before and 3 after the point, such as "1250.00"',
    pattern: '^[0-9]{1,12}(\\.[0-9]{1,3})?$',
  },
  currency: {
    name: 'currency',
    type: 'text',
    description: 'a currency code of ISO 4217, such as INR',
    pattern: '^[A-Za-z]{3}$',
  },
  payee: { name: 'payee', ...textRule(40), description: '1 to 40 characters with a letter or digit, no URL' },
} satisfies Record<keyof NamedTransaction, VariableRule>

/** @throws validation_error */
export function readTransaction(given: unknown, isTopLevelDomain: IsTopLevelDomain): NamedTransaction {
  if (!isObject(given) || Object.keys(given).some((name) => !Object.hasOwn(transactionRules, name)))
    throw invalidField('transaction', 'must be an object with amount, currency and payee alone.')
  const read = (rule: VariableRule, isValid = (_: string) => true): string => {
    const value = readValue(rule, given[rule.name], isTopLevelDomain)
    if (value !== undefined && isValid(value)) return value
    throw invalidField(`transaction.${rule.name}`, `must be ${rule.description}.`)
  }
  const amount = read(transactionRules.amount).replace(/^0+(?=\d)/, '')
  return {
    amount: amount.replace(/\.0*$|(\.\d*?)0+$/, '$1'),
    currency: read(transactionRules.currency, (code) => currencies.has(code.toUpperCase())).toUpperCase(),
    payee: read(transactionRules.payee, (payee) => /[\p{L}\p{N}]/u.test(payee)),
  }
}

/** For this text: Unicode's isolates keep a payee of the other direction from reordering the words and numbers beside it. */
export function isolated(transaction: NamedTransaction, text: string): NamedTransaction {
  const [isRightToLeft = false] = directionsOf(text.replaceAll(/\{\{\w+\}\}/g, ''))
  const { payee } = transaction
  const differs = directionsOf(payee).some((each) => each !== isRightToLeft)
  return differs ? { ...transaction, payee: `\u2068${payee}\u2069` } : transaction
}

/** Of each letter, whether its script is right-to-left: those have blocks of their own. */
function directionsOf(text: string): boolean[] {
  const rightToLeft = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u
  return Array.from(text.matchAll(/\p{L}/gu), ([letter]) => rightToLeft.test(letter))
}

/** The amount as a text in a language has it, with all decimals that are usual in its currency. */
export function amountIn(lang: string, { amount, currency }: NamedTransaction): string {
  const [whole, fraction = ''] = amount.split('.')
  const decimals = fraction + usualZeros(currency).slice(fraction.length)
  return formatted('number', decimals === '' ? amount : `${whole}.${decimals}`, lang)
}

const usualZeros = remembered(200, (currency) => {
  const format = new Intl.NumberFormat('en', { style: 'currency', currency })
  return '0'.repeat(format.resolvedOptions().minimumFractionDigits ?? 0)
})
