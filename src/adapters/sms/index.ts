import type { ProviderCodes } from '../../domain/delivery/provider-codes.ts'
import { awsSms } from './aws-sms.ts'
import { discard } from './discard.ts'
import { kannel } from './kannel.ts'
import { msg91 } from './msg91.ts'
import { outbox } from './outbox.ts'
import type { SmsProviderSpec } from './provider.ts'
import { sns } from './sns.ts'
import { telegram } from './telegram.ts'
import { twilio } from './twilio.ts'
import { twilioVoice } from './twilio-voice.ts'
import { vonage } from './vonage.ts'
import { vonageVoice } from './vonage-voice.ts'
import { webhook } from './webhook.ts'
import { whatsapp } from './whatsapp.ts'

export const providerSpecs: readonly SmsProviderSpec[] = [
  outbox,
  discard,
  webhook,
  kannel,
  twilio,
  vonage,
  msg91,
  sns,
  awsSms,
  whatsapp,
  telegram,
  twilioVoice,
  vonageVoice,
]

export const providerNames: readonly string[] = providerSpecs.map((provider) => provider.name)

export const providerCodes: ReadonlyMap<string, ProviderCodes> = new Map(
  providerSpecs.flatMap(({ name, codes }) => (codes ? [[name, codes] as const] : [])),
)

/** They deliver nothing. The mailer `outbox` has the name of the provider. */
export const developmentOnly: readonly string[] = providerSpecs
  .filter((provider) => provider.developmentOnly)
  .map((provider) => provider.name)

export type { ProviderTools, SmsProviderSpec } from './provider.ts'
