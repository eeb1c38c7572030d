import { discard } from './discard.ts'
import { kannel } from './kannel.ts'
import { msg91 } from './msg91.ts'
import { outbox } from './outbox.ts'
import { sns } from './sns.ts'
import { twilio } from './twilio.ts'
import type { Vendor } from './vendor.ts'
import { vonage } from './vonage.ts'
import { webhook } from './webhook.ts'

/** The SMS vendors there are. A new one is its file and its line here. */
const vendors: readonly Vendor[] = [outbox, discard, webhook, kannel, twilio, vonage, msg91, sns]

export const vendorNames: readonly string[] = vendors.map((vendor) => vendor.name)

/** The vendor of a name in SMS_PLAIN or SMS_TEMPLATE. */
export function vendorOf(name: string): Vendor | undefined {
  return vendors.find((vendor) => vendor.name === name)
}

export type { Vendor, VendorTools } from './vendor.ts'
