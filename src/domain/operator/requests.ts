import { advice, see } from '../ground/advice.ts'
import { textProblem } from '../ground/body.ts'
import { InvalidInput, OperatorError } from '../ground/operator-error.ts'
import type { IntegrationRequestRecord } from '../integration/integration.ts'
import { unscoped } from '../limits/scope.ts'
import { type Brand, brandProblems, nameKey } from '../texts/brand.ts'
import { firstKey, requireAppId } from './apps.ts'
import { freshBrand } from './brands.ts'
import { type ChangePorts, change, type OperatorPorts, refuse } from './changes.ts'

/**
 * `request approve`: creates the app, scoped to the brand (design D38), and, if missing, the brand. The returned key is
 * not stored.
 */
export async function approveRequest(
  ports: OperatorPorts,
  idAsGiven: string,
  { appId, brandSlug: slugAsGiven }: { readonly appId: string; readonly brandSlug: string },
): Promise<{ readonly key: string; readonly brand: Brand; readonly brandExisted: boolean }> {
  requireAppId(appId)
  const requestId = requestIdOf(idAsGiven)
  const brandSlug = nameKey(slugAsGiven)
  const apiKey = ports.secrets.newApiKey()
  const target = { requestId, appId, brandSlug }
  const { brand, brandExisted } = await change(ports, target, ({ request, brand: current, keys, scope }) => {
    const { brandName } = requirePending(requestId, request)
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
      entry: { action: 'request.approved', target: requestId, details },
    }
  })
  return { key: apiKey.key, brand, brandExisted }
}

export async function rejectRequest(
  ports: ChangePorts,
  idAsGiven: string,
  reasonAsGiven: string,
): Promise<void> {
  const requestId = requestIdOf(idAsGiven)
  const reason = reasonAsGiven.trim() || null
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
}

export function requestIdOf(text: string): string {
  return text.trim().toLowerCase()
}

export function noRequest(requestId: string): OperatorError {
  return new OperatorError(
    `Request ${requestId} does not exist.`,
    advice`${see('request list')} lists the requests.`,
  )
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
