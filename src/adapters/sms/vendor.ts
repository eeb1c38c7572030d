import type { Clock, Outbox, SmsProvider } from '../../domain/ports.ts'
import type { Settings } from '../../settings.ts'

/** What a provider may use of the process around it. */
export interface VendorTools {
  readonly now: Clock
  readonly outbox: Outbox
}

/** One SMS vendor: its name in SMS_PLAIN and SMS_TEMPLATE, and how it is made from its settings. */
export interface Vendor {
  readonly name: string
  /** Whether messages reach nobody, so that it is refused in production (design 7). */
  readonly developmentOnly?: true
  /** Reads and checks the vendor's settings, at start; the returned function makes the provider. */
  configure(settings: Settings): (tools: VendorTools) => SmsProvider
}
