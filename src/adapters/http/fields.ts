import { Type } from '@sinclair/typebox'
import { capitalized } from '../../domain/ground/format.ts'
import { purposePattern } from '../../domain/otp/binding.ts'
import { transactionRules } from '../../domain/texts/transaction.ts'
import type { VariableRule } from '../../domain/texts/variables.ts'
import { notBlank, oneOf, optional } from './schema.ts'

// The fields that requests and answers of several endpoints have.

const unlessInHeader = 'Required without an Authorization header.'
export const credentials = Type.Partial(
  Type.Object({
    appId: Type.String({ minLength: 1, description: `The id of your application. ${unlessInHeader}` }),
    apiKey: Type.String({
      minLength: 1,
      format: 'password',
      description: `The API key of appId. ${unlessInHeader} Use it only on a server, never in a web page or a mobile app.`,
    }),
  }),
).properties

export const brandIdText = 'Slug of an active brand. Case and surrounding spaces are ignored.'
export const brandId = Type.String({ ...notBlank, description: brandIdText })

const channels = ['SMS', 'EMAIL'] as const
export const channel = oneOf(channels)
export const smsChannel = channelOf('SMS')
export const emailChannel = channelOf('EMAIL')

function channelOf<Name extends (typeof channels)[number]>(name: Name) {
  return oneOf([name] as const, {
    description: `${name}. Case is ignored: ${name.toLowerCase()} is accepted too.`,
  })
}

export const phone = Type.String({
  pattern: '^[ +().-]*([0-9][ +().-]*){7,20}$',
  description:
    'A phone number with country code. Allowed are digits, spaces and + - ( ) . characters. A leading 00 and a trunk ' +
    'prefix are removed; 7 to 15 digits must remain. A server with PHONE_DEFAULT_REGION also accepts national ' +
    'numbers, and rejects those that are a number of another country too. Send the country code with +.',
})

// Without lookarounds and classes of Unicode, which not all languages have.
const mailAtom = String.raw`[^\s@.()<>[\]:;,"\\]+`
const letterOrDigit = String.raw`[^\x00-\x2F\x3A-\x40\x5B-\x60\x7B-\x7F]+`
const domainLabel = `${letterOrDigit}(-+${letterOrDigit})*`
export const email = Type.String({
  pattern: String.raw`^\s*${mailAtom}(\.${mailAtom})*@${domainLabel}(\.${domainLabel})*\.?\s*$`,
  description:
    'One e-mail address of at most 254 characters, with at most 64 octets before the @. Case, surrounding spaces ' +
    'and the spelling of an internationalized domain are ignored.',
})

export const reference = Type.String({
  ...notBlank,
  maxLength: 64,
  description:
    'Your own id of this request, which the event log shows. No line breaks, no invisible characters.',
})

/** What a code is for (design D55). */
export const binding = {
  purpose: optional(
    Type.String({
      pattern: purposePattern,
      description:
        'What the code is for, such as password-change. A verify must give the same purpose as the send, or none if it had none: otherwise the answer is mismatch, which counts.',
    }),
  ),
  transaction: optional(
    Type.Object(
      {
        amount: part(transactionRules.amount),
        currency: part(transactionRules.currency),
        payee: part(transactionRules.payee),
      },
      {
        additionalProperties: false,
        description:
          'The payment that the code confirms, which the message names. A verify must give the same transaction: otherwise the answer is mismatch, which counts. Amounts are compared by value, and the case of the currency is ignored. The message then does not have the loginId, and is an SMS or an e-mail.',
      },
    ),
  ),
}

function part({ name: _, type: __, description, ...rules }: VariableRule) {
  return Type.Unsafe<string>({ type: 'string', description: `${capitalized(description)}.`, ...rules })
}

/** Any value, since none is an error (design D47). */
export function langField(what: string, more: string) {
  return Type.Optional(
    Type.Unsafe<string | null>({
      anyOf: [{ type: 'string' }, { description: 'Any other value is ignored.' }],
      description: `The language of ${what}, as a BCP 47 tag such as hi or pt-BR, or as an Accept-Language header. The text is that of the tag, else of its base language, of the language of the brand, English. An unknown or malformed tag is no error. ${more}`,
    }),
  )
}

export const recipientIndex = Type.Integer({
  minimum: 0,
  description: 'The position of the recipient in to, from 0. A recipient that appears twice has the first.',
})

export const maskedRecipient = Type.String({ description: 'The recipient, masked.' })

// The values of examples.

export const demoApp = { appId: 'demo', apiKey: 'otp_example_key' } as const
export const demo = { ...demoApp, brandId: 'acme' } as const
export const somePhone = '+1 202 555 0143'
export const somePayment = {
  purpose: 'payment',
  transaction: { amount: '1250.00', currency: 'INR', payee: 'City Water' },
}
export const someRequestId = '3f2b8f0e-6c1d-4a53-9f57-0d6a2c9e41b7'
