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

/** Of VOICE_PROVIDER. */
export function voiceSpec(settings: Settings) {
  const name = settings.optional(messageSettings.VOICE_PROVIDER)?.trim()
  return [twilioVoice, vonageVoice].find((spec) => spec.name === name)
}
