import { telegram, telegramSettings } from '../adapters/sms/telegram.ts'
import { twilioVoice } from '../adapters/sms/twilio-voice.ts'
import { vonageVoice } from '../adapters/sms/vonage-voice.ts'
import { whatsapp, whatsappSettings } from '../adapters/sms/whatsapp.ts'
import { messageSettings } from './server-settings.ts'
import type { Settings } from './settings.ts'

/** Ways with one provider. They are set up when the setting is set. */
export const chatWays = [
  { way: 'whatsapp', spec: whatsapp, setting: whatsappSettings.WHATSAPP_PHONE_NUMBER_ID },
  { way: 'telegram', spec: telegram, setting: telegramSettings.TELEGRAM_TOKEN },
] as const

/** Those that are set up. */
export function otherWaysIn(settings: Settings) {
  const caller = settings.optional(messageSettings.VOICE_PROVIDER)?.trim()
  const voice = [twilioVoice, vonageVoice].filter(({ name }) => name === caller)
  return [
    ...chatWays.filter(({ setting }) => settings.optional(setting) !== undefined),
    ...voice.map((spec) => ({ way: 'voice', spec }) as const),
  ]
}
