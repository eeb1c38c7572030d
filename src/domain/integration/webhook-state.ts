import { counted } from '../ground/format.ts'
import type { Webhook } from '../ground/webhook-events.ts'
import type { FailingEvents } from './event-store.ts'

/** Whether events of an app arrive: off, since otpost switched the webhook off. */
export type WebhookStateName = 'on' | 'failing' | 'off'

export function webhookStateOf(
  { disabledAt }: Pick<Webhook, 'disabledAt'>,
  failing: FailingEvents | undefined,
): WebhookStateName {
  if (disabledAt !== null) return 'off'
  return failing ? 'failing' : 'on'
}

/** As a command and a page show it. */
export function webhookStateWords(
  state: WebhookStateName,
  failing: Pick<FailingEvents, 'events' | 'error'> | null,
): string {
  const words = { on: 'on', failing: 'failing', off: 'switched off' }[state]
  return failing ? `${words}: ${counted(failing.events, 'event')}, ${failing.error}` : words
}
