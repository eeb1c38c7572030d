import type { Mail, SmsMessage } from '../ground/providers.ts'

export type MailContent = Pick<Mail, 'subject' | 'html' | 'text' | 'lang'>

export interface SmsContent {
  readonly text: string
  readonly lang?: SmsMessage['lang']
  /** Null: text of the caller. */
  readonly template:
    | (Omit<NonNullable<SmsMessage['template']>, 'registration'> & {
        readonly registrationKey: string
      })
    | null
}
