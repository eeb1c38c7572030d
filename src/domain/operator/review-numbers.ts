import { reviewNumberAlert } from '../ground/alert.ts'
import { type Contacts, mask, type Recipient } from '../ground/contact.ts'
import { InvalidInput, OperatorError } from '../ground/operator-error.ts'
import type { Secrets } from '../ground/ports.ts'
import { dayMs } from '../ground/time.ts'
import type { PolicyPorts } from '../policy/policy-store.ts'
import { activeReviewNumbers, type ReviewNumber, untilWords } from '../policy/review-number.ts'
import type { Brands } from '../texts/brand.ts'
import { action, type Group } from './action.ts'
import { existingBrand } from './brands.ts'
import { field, optional, text } from './fields.ts'

export const maxReviewNumbers = 10
const maxReviewDays = 90

export interface ReviewNumberPorts extends PolicyPorts {
  readonly brands: Pick<Brands, 'bySlug'>
  readonly secrets: Pick<Secrets, 'newId' | 'newCode' | 'keyedCodes' | 'subjects'>
  readonly contacts: Pick<Contacts, 'phone' | 'faultOf'>
  /** Whether it verified a code that was sent to it, within 180 days. */
  readonly isVerifiedNumber: (subjects: readonly string[]) => Promise<boolean>
}

/** Fields as operators write them. */
interface ReviewNumberRequest {
  readonly phone: string
  readonly brand: string
}

/**
 * Design D48. An expired number is replaced.
 * @param until `YYYY-MM-DD`: the last day in UTC
 * @returns with the fixed code, which is not stored
 * @throws OperatorError
 */
export async function addReviewNumber(
  ports: ReviewNumberPorts,
  { phone, brand, until }: ReviewNumberRequest & { readonly until: string },
): Promise<{ readonly number: ReviewNumber; readonly code: string }> {
  const { secrets, actor } = ports
  const { to, subjects } = recipientIn(ports, phone)
  const now = ports.now()
  const expiresAt = endOf(until, now)
  const brandSlug = await existingBrand(ports.brands, brand)
  if (await ports.isVerifiedNumber(subjects)) {
    throw new OperatorError(
      'This phone number verified a code within the last 180 days, so a customer may have it. Choose a number that no customer has.',
    )
  }
  const code = secrets.newCode()
  const number: ReviewNumber = {
    subject: subjects[0],
    brandSlug,
    keyedCode: secrets.keyedCodes({ brandSlug, channel: 'SMS', to }, code)[0],
    masked: mask({ channel: 'SMS', to }),
    createdAt: now,
    expiresAt,
  }
  const about = { phone: number.masked, brandId: brandSlug, until: untilWords(number), addedBy: actor.name }
  const alert = reviewNumberAlert(secrets.newId(), about, now)
  await ports.policy.change({ actor, now }, ({ reviewNumbers }) => {
    const active = activeReviewNumbers(reviewNumbers, now)
    const same = active.find(isOf(subjects, brandSlug))
    if (same) {
      throw new OperatorError(
        `${same.masked} is already a review number of brand ${brandSlug}, until ${untilWords(same)}. Remove it first to get another code or date.`,
      )
    }
    if (active.length >= maxReviewNumbers) {
      throw new OperatorError(`There are already ${maxReviewNumbers} review numbers. Remove one first.`)
    }
    return {
      saveReviewNumbers: [number],
      removeReviewNumbers: reviewNumbers.filter((each) => !active.includes(each)),
      alert,
      entry: {
        action: 'review-number.added',
        target: brandSlug,
        details: { number: number.masked, until: untilWords(number) },
      },
    }
  })
  return { number, code }
}

function isOf(subjects: readonly string[], brandSlug: string) {
  return (number: ReviewNumber) => number.brandSlug === brandSlug && subjects.includes(number.subject)
}

function recipientIn(
  { contacts, secrets }: Pick<ReviewNumberPorts, 'contacts' | 'secrets'>,
  phone: string,
): { readonly to: Recipient['to']; readonly subjects: readonly [string, ...string[]] } {
  const recipient = contacts.phone(phone)
  if (!recipient) throw new InvalidInput(`The phone number ${contacts.faultOf(phone, 'SMS')}`)
  return { to: recipient.to, subjects: secrets.subjects('SMS', recipient.to) }
}

/** The end of the day in UTC. @throws OperatorError */
function endOf(text: string, now: number): number {
  const day = text.trim()
  // JavaScript turns 30 February into 1 March.
  const isDay = /^\d{4}-\d{2}-\d{2}$/.test(day) && new Date(day).toJSON()?.startsWith(day)
  if (!isDay) throw new InvalidInput('The last day must be a date such as 2026-11-21.')
  const start = Date.parse(day)
  const today = Math.floor(now / dayMs) * dayMs
  if (start < today) throw new InvalidInput('The last day must not be in the past.')
  if (start > today + maxReviewDays * dayMs) {
    const latest = new Date(today + maxReviewDays * dayMs).toISOString().slice(0, 10)
    throw new InvalidInput(
      `A review number ends after at most ${maxReviewDays} days. The last day can be ${latest} or earlier.`,
    )
  }
  return start + dayMs
}

export interface ReviewActionPorts extends ReviewNumberPorts {
  /** @throws OperatorError without the secret key of the server */
  readonly requireSecret: () => void
}

export const reviewNumberGroup: Group = {
  name: 'review-number',
  does: 'give app store reviewers a phone number with a fixed code that is not sent',
  entries: 'review numbers',
  target: 'brand',
}

const phoneWords = {
  label: 'Phone number',
  help: 'a phone number as in API requests',
  hint: '',
  placeholder: '+1 202 555 0143',
}

export const reviewNumberAdd = action(reviewNumberGroup, 'add', {
  role: 'owner',
  isSensitive: true,
  does: `create a review number (at most ${maxReviewNumbers}) and print its fixed code once`,
  fields: {
    phone: field(text, phoneWords),
    brand: field(text, {
      label: 'Brand',
      as: '--brand <slug>',
      help: 'the brand whose codes it is for',
      hint: '',
    }),
    until: field(text, {
      label: 'Last day',
      as: '--until <date>',
      help: `the last day in UTC, such as 2026-11-21; at most ${maxReviewDays} days from today`,
      hint: `In UTC, at most ${maxReviewDays} days from today.`,
      placeholder: '2026-11-21',
    }),
  },
  audit: { 'review-number.added': 'Review number added' },
  form: { path: 'review-numbers' },
  run: (ports: ReviewActionPorts, asked) => {
    ports.requireSecret()
    return addReviewNumber(ports, asked)
  },
  said: ({ code, number }) => ({
    text: `Fixed code for ${number.masked} and brand ${number.brandSlug}`,
    secret: code,
  }),
})

export const reviewNumberRemove = action(reviewNumberGroup, 'remove', {
  role: 'operator',
  isSensitive: false,
  does: 'remove a review number',
  fields: {
    phone: optional(text, phoneWords),
    brand: field(text, { label: 'Brand', as: '--brand <slug>', help: 'its brand' }),
    subject: optional(text, {
      label: 'Hashed identifier',
      help: 'the hashed identifier of the phone number, in place of the number',
      hasNoOption: true,
    }),
  },
  audit: { 'review-number.removed': 'Review number removed' },
  form: { path: 'review-numbers/remove', page: 'review-numbers' },
  run: async (ports: ReviewActionPorts, { subject, phone = '', brand }) => {
    if (subject === undefined) ports.requireSecret()
    const { to, subjects } = subject === undefined ? recipientIn(ports, phone) : { subjects: [subject] }
    const masked = to && mask({ channel: 'SMS', to })
    const brandSlug = subject === undefined ? await existingBrand(ports.brands, brand) : brand
    const { policy, actor, now } = ports
    const { removed } = await policy.change({ actor, now: now() }, ({ reviewNumbers }) => {
      const all = reviewNumbers.filter(isOf(subjects, brandSlug))
      const [removed] = all
      if (!removed) {
        // The hashed identifier of a key that SECRET_KEY no longer lists cannot be computed.
        const isAlike = reviewNumbers.some((each) => each.brandSlug === brandSlug && each.masked === masked)
        const alike = ` ${masked} is another number, or was added under another secret key. The console can remove it.`
        throw new OperatorError(
          `The phone number is no review number of brand ${brandSlug}.${isAlike ? alike : ''}`,
        )
      }
      const details = { number: removed.masked, until: untilWords(removed) }
      return {
        removed,
        removeReviewNumbers: all,
        entry: { action: 'review-number.removed', target: brandSlug, details },
      }
    })
    return removed
  },
  said: ({ masked, brandSlug }) => `Removed the review number ${masked} of brand ${brandSlug}.`,
})

export const reviewNumberActions = [reviewNumberAdd, reviewNumberRemove]
