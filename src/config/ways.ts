import { telegram, telegramSettings } from '../adapters/sms/telegram.ts'
import { whatsapp, whatsappSettings } from '../adapters/sms/whatsapp.ts'

/** Ways with one provider. They are set up when the setting is set. */
export const chatWays = [
  { way: 'whatsapp', spec: whatsapp, setting: whatsappSettings.WHATSAPP_PHONE_NUMBER_ID },
  { way: 'telegram', spec: telegram, setting: telegramSettings.TELEGRAM_TOKEN },
] as const
