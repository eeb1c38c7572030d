import { advice, see } from '../ground/advice.ts'
import type { Actor, AuditReader } from '../ground/audit.ts'
import { textProblem } from '../ground/body.ts'
import { InvalidInput, OperatorError } from '../ground/operator-error.ts'
import { isoTime, isoTimeOr } from '../ground/time.ts'
import type { IntegrationRequestRecord } from '../integration/integration.ts'
import { unscoped } from '../limits/scope.ts'
import { brandProblems, nameKey } from '../texts/brand.ts'
import { action, type Group } from './action.ts'
import { changesAfterApproval, type LimitPorts, resemblances, setLimits } from './approval-limits.ts'
import { firstKey, requireAppId } from './apps.ts'
import { freshBrand } from './brands.ts'
import {
  type BrandStore,
  change,
  type IntegrationRequestStore,
  type OperatorPorts,
  refuse,
} from './changes.ts'
import { change as changed, field, type InputOf, oneOf, optional, text, toggle } from './fields.ts'
import {
  checkRequestMail,
  defaultMails,
  lastRequestMail,
  noRequest,
  type RequestMail,
  requestIdOf,
} from './request-mail.ts'

export interface RequestPorts extends OperatorPorts, LimitPorts {
  readonly audit: AuditReader
  readonly brands: BrandStore
  readonly requests: IntegrationRequestStore
  readonly isCountry: (code: string) => boolean
  /** For `{{url}}`. Undefined: it is not known. */
  readonly mailUrl: () => Promise<string | undefined>
  /** @throws OperatorError if it was not sent */
  readonly mailRequester: (
    actor: Actor,
    id: string,
    mail: RequestMail,
    after: number | null,
  ) => Promise<string>
}

function requirePending(
  requestId: string,
  request: IntegrationRequestRecord | undefined,
): IntegrationRequestRecord {
  if (!request) throw noRequest(requestId)
  if (request.status === 'pending') return request
  throw new OperatorError(`Request ${requestId} is already ${request.status}.`)
}

/** `acme-shop` for `Acme Shop!`; may be empty. */
export function suggestedSlug(name: string): string {
  return name
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 40)
    .replace(/-+$/, '')
}

/** As in JSON. */
export function requestRow({ id, createdAt, decidedAt, ...rest }: IntegrationRequestRecord) {
  return {
    integrationRequestId: id,
    createdAt: isoTime(createdAt),
    ...rest,
    decidedAt: isoTimeOr(decidedAt),
  }
}

export const requestGroup: Group = {
  name: 'request',
  does: 'approve or reject integration requests (POST /integrations/requests)',
  entries: 'integration requests',
  target: 'request ID',
}

const idField = field(requestIdOf, { label: 'Request', help: 'the id of the integration request' })

const mailFields = {
  subject: changed(text, {
    label: 'Subject',
    as: '--mail-subject <subject>',
    help: 'its subject, instead of the default',
    hint: '',
    isProse: true,
  }),
  text: changed(text, {
    label: 'Text',
    as: '--mail-file <file>',
    help: 'its text, instead of the default; - for standard input',
    hint: 'Plain text. Words such as `{{appId}}` and `{{brandId}}` are replaced with their values. Do not write the API key here.',
    isFile: true,
    isProse: true,
    rows: 12,
    max: 10_000,
  }),
}

const legend = 'E-mail to the requester'

const choiceFields = {
  mail: toggle({
    label: 'E-mail',
    as: '--mail',
    help: 'send the requester an e-mail, without the API key',
    hint: '',
    legend,
  }),
  subject: { ...mailFields.subject, legend },
  text: { ...mailFields.text, legend },
}

/** In a command, also if its subject or text is given. */
function isMailed({ mail, subject, text }: InputOf<typeof choiceFields>): boolean {
  return mail ?? (subject !== undefined || text !== undefined)
}

/** @throws OperatorError */
async function mailIn(
  ports: RequestPorts,
  { subject, text }: InputOf<typeof mailFields>,
  status: 'approved' | 'rejected',
): Promise<RequestMail> {
  const byDefault = defaultMails[status]
  const mail = { subject: subject ?? byDefault.subject, text: text ?? byDefault.text }
  checkRequestMail(mail)
  const hasUrl = /\{\{\s*url\s*\}\}/.test(`${mail.subject}\n${mail.text}`)
  if (hasUrl && (await ports.mailUrl()) === undefined)
    throw new OperatorError(
      'PUBLIC_URL is not set, and the e-mail needs it for {{url}}. Set PUBLIC_URL, or give a text without {{url}}.',
    )
  return mail
}

/** The decision is stored, so nothing is thrown. */
async function mailed(ports: RequestPorts, id: string, mail: RequestMail | null) {
  try {
    return { sent: mail && (await ports.mailRequester(ports.actor, id, mail, null)) }
  } catch (error) {
    if (!(error instanceof OperatorError)) return { failure: error }
    const next = advice`${see('request mail', { id })} sends the e-mail.`
    return { failure: new OperatorError(`${error.message} The decision is stored.`, next) }
  }
}

const limitWords = { hasNoOption: true, byDefault: '' } as const

/** Creates the app, scoped to the brand (design D38), and, if missing, the brand. The key is not stored. */
export const requestApprove = action(requestGroup, 'approve', {
  role: 'operator',
  isSensitive: true,
  does: 'approve a request: create its app and brand, and print the API key',
  fields: {
    id: idField,
    appId: field(text, {
      label: 'App ID',
      as: '--app <appId>',
      help: 'the appId of the new app',
      hint: 'The app sends it as `appId`.',
    }),
    brandSlug: field(nameKey, {
      label: 'Brand slug',
      as: '--brand <slug>',
      help: 'the brandId of a new or existing brand',
      hint: 'The app sends it as `brandId`.',
    }),
    perMinute: field(text, {
      ...limitWords,
      label: 'Calls per minute',
      help: '1 to 999999. If empty, the setting `GLOBAL_LIMIT_PER_MINUTE` applies',
      max: 6,
    }),
    countries: field(text, {
      ...limitWords,
      label: 'Countries',
      help: 'SMS of a new brand go only to these. If empty, the rules for all brands apply',
      placeholder: 'GB, DE',
    }),
    budget: field(text, { ...limitWords, label: 'Budget', help: '', hint: '', placeholder: '20.50' }),
    period: field(oneOf('period', { day: 'day (UTC)', month: 'month (UTC)' }), {
      label: 'Per',
      help: '',
      hint: '',
      byDefault: 'day',
      hasNoOption: true,
    }),
    ...choiceFields,
  },
  audit: { 'request.approved': 'Request approved' },
  form: { path: 'requests/{id}/approve', page: 'requests/{id}' },
  sends: isMailed,
  run: async (ports: RequestPorts, input) => {
    const { id, appId, brandSlug } = input
    requireAppId(appId)
    const mail = isMailed(input) ? await mailIn(ports, input, 'approved') : null
    const [request, brands] = await Promise.all([ports.requests.get(id), ports.brands.list()])
    const changes = changesAfterApproval(input, brands, ports.isCountry)
    const apiKey = ports.secrets.newApiKey()
    const target = { requestId: id, appId, brandSlug }
    const approval = await change(ports, target, ({ request, brand: current, keys, scope }) => {
      const { brandName } = requirePending(id, request)
      const brand = current ?? { ...freshBrand(brandSlug), displayName: brandName }
      refuse(brandProblems(brand), InvalidInput)
      const existed = current ? { brandExisted: 'yes' } : {}
      const details = { app: appId, key: apiKey.lastFour, brand: brandSlug, ...existed }
      return {
        brand,
        brandExisted: current !== undefined,
        newKey: firstKey(appId, apiKey, keys),
        scope: { ...(scope ?? unscoped(appId)), brands: [brandSlug] },
        verdict: { status: 'approved', reason: null, appId, brandSlug },
        entry: { action: 'request.approved', target: id, details },
      }
    })
    const { brand, brandExisted } = approval
    const unset = await setLimits(ports, changes)
    const alike = request ? resemblances(request, brands) : []
    return { key: apiKey.key, brand, brandExisted, alike, unset, ...(await mailed(ports, id, mail)) }
  },
  said: ({ key, brand, brandExisted, alike, unset, sent, failure }) => {
    const { slug, displayName, status } = brand
    const existed = `Brand ${slug} (${displayName}, ${status}) already existed and was not changed.`
    const warnings = [...alike, brandExisted && existed, unset].flatMap((text) => (text ? [{ text }] : []))
    return { text: sent ?? '', secret: key, warnings, failure }
  },
})

export const requestReject = action(requestGroup, 'reject', {
  role: 'operator',
  isSensitive: false,
  does: 'reject a request',
  fields: {
    id: idField,
    reason: field(text, {
      label: 'Reason',
      as: '--reason <text>',
      help: 'the reason; otpost does not send it',
      hint: '',
      byDefault: '',
      isProse: true,
      rows: 3,
    }),
    ...choiceFields,
  },
  audit: { 'request.rejected': 'Request rejected' },
  form: { path: 'requests/{id}/reject', page: 'requests/{id}' },
  sends: isMailed,
  run: async (ports: RequestPorts, input) => {
    const mail = isMailed(input) ? await mailIn(ports, input, 'rejected') : null
    const { id: requestId } = input
    const reason = input.reason.trim() || null
    const problem = reason && textProblem('The reason', reason, { max: 500, lines: 'many' })
    if (problem) throw new InvalidInput(problem)
    await change(ports, { requestId }, ({ request }) => {
      requirePending(requestId, request)
      return {
        verdict: { status: 'rejected', reason, appId: null, brandSlug: null },
        // The applicant and the reason are left out, so that `forget` can delete them.
        entry: { action: 'request.rejected', target: requestId, details: {} },
      }
    })
    return mailed(ports, requestId, mail)
  },
  said: ({ sent, failure }, { id }) => ({
    text: `Request ${id} is rejected.`,
    warnings: sent ? [{ text: sent }] : [],
    failure,
  }),
})

export const requestMail = action(requestGroup, 'mail', {
  role: 'operator',
  isSensitive: false,
  does: 'send the requester an e-mail after the decision',
  fields: {
    id: idField,
    ...mailFields,
    after: optional(Number, {
      label: 'After',
      help: 'the id of the latest audit entry about an e-mail that you have seen; 0: none',
      hasNoOption: true,
    }),
  },
  audit: {
    'request.mail': 'E-mail to requester started',
    'request.mailed': 'E-mail to requester sent',
    'request.mail-failed': 'E-mail to requester failed',
  },
  form: { path: 'requests/{id}/mail', page: 'requests/{id}' },
  sends: () => true,
  run: async (ports: RequestPorts, { id, after, ...input }) => {
    const request = await ports.requests.get(id)
    if (!request) throw noRequest(id)
    const mail = await mailIn(ports, input, request.status === 'rejected' ? 'rejected' : 'approved')
    const last = after ?? (await lastRequestMail(ports.audit, id))?.id
    return ports.mailRequester(ports.actor, id, mail, last || null)
  },
  said: (sent) => ({ text: '', warnings: [{ text: sent }] }),
})

export const requestActions = [requestApprove, requestReject, requestMail]
