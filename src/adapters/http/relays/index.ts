import { Elysia } from 'elysia'
import type { Body } from '../../../domain/ground/body.ts'
import { docsAt } from '../../../domain/ground/docs.ts'
import { Failure } from '../../../domain/ground/failures.ts'
import { appOf, type RelayPorts, relayed } from '../../../domain/integration/relayed.ts'
import type { Policy } from '../../../domain/policy/policy.ts'
import type { Relay, RelayKindName } from '../../../domain/policy/relay.ts'
import type { RequestContext } from '../../../domain/request/request-context.ts'
import type { Answers } from '../answers.ts'
import { formOf, jsonOf, maxBodyBytes, readBytes } from '../body.ts'
import type { HttpRequest, HttpRequests } from '../http-request.ts'
import { authentik } from './authentik.ts'
import { authgear } from './authgear.ts'
import { camara } from './camara.ts'
import { keycloak } from './keycloak.ts'
import type { RelayCall, RelayKind } from './kind.ts'
import { kratos } from './kratos.ts'
import { logto } from './logto.ts'
import { faultOf } from './proof.ts'
import { supabase } from './supabase.ts'
import { twilio } from './twilio.ts'
import { zitadel } from './zitadel.ts'

const kinds: Readonly<Record<RelayKindName, RelayKind>> = {
  supabase,
  zitadel,
  logto,
  kratos,
  authgear,
  authentik,
  keycloak,
  twilio,
  camara,
}

const paths = [...new Set(Object.values(kinds).flatMap(({ routes }) => Object.keys(routes)))]

/** Some callers can only be given a host name: their account names the relay. */
const accountPath = '/2010-04-01/Accounts/:sid/Messages.json'

interface Mounting {
  readonly httpRequests: HttpRequests
  readonly answers: Answers
  readonly portsOf: (context: RequestContext) => RelayPorts
  /** Called when the body is received. */
  readonly received: (context: HttpRequest) => void
}

type Params = Readonly<Record<'name' | 'sid', string | undefined>>

/** The endpoints of identity systems that have their codes delivered (design D53). */
export function relayRoutes({ httpRequests, answers, portsOf, received }: Mounting) {
  const app = new Elysia({ strictPath: true, normalize: false })
  for (const path of paths) mount(`/relay/:name${path}`, path)
  mount(accountPath, accountPath)
  return app

  function mount(pattern: string, path: string): void {
    const handle = ({ request, params }: { readonly request: Request; readonly params: object }) =>
      answered(request, params as Params, pattern, path)
    app.post(pattern, handle, { parse: 'none' })
  }

  async function answered(request: Request, { name, sid }: Params, pattern: string, path: string) {
    const { headers } = request
    const context = httpRequests.of(request)
    context.route = pattern
    context.operation = 'relay'
    let called: { readonly kind: RelayKind; readonly call: RelayCall } | undefined
    try {
      const ports = portsOf(context)
      const reading = readBytes(request, maxBodyBytes).finally(() => received(context))
      // Awaited below, when it is known how the caller reads errors.
      reading.catch(() => {})
      const policy = await ports.policy()
      const relay = name === undefined ? ofAccount(policy, sid) : policy.relays.get(name)
      const kind = relay && kinds[relay.kind]
      const route = kind?.routes[path]
      if (relay && kind && route) {
        context.app = appOf(relay)
        called = { kind, call: { body: {}, headers, account: relay.user } }
      }
      const bytes = await reading
      if (!relay || !kind || !route || !called) throw new Failure('route_not_found', noRelay)
      await prove(ports, context, relay, { headers, body: bytes, proof: kind.proof })
      const body: Body = route.isForm ? Object.fromEntries(formOf(bytes)) : jsonOf(bytes)
      const call = { ...called.call, body }
      called = { kind, call }
      const requests = [route.read(call)].flat()
      const waitsMs = kind.waitsMs / requests.length
      for (const asked of requests) await relayed(ports, context, { relay, policy, waitsMs }, asked)
      const { replayOf = context.requestId } = context
      const { status, body: answer, headers: further } = route.done(call, replayOf)
      context.status = status
      return answers.of(context, answer, { headers: further })
    } catch (error) {
      const { status, headers: given, envelope } = answers.failed(context, error)
      const { failure, attempts, country } = context
      const own = failure && called?.kind.failed?.({ ...called, failure, status, path, attempts, country })
      // A caller that is not known may repeat a request with Retry-After at once.
      if (!own) return answers.of(context, envelope, { headers: called && given })
      // Retry-After is for callers that see a 429.
      const headers = { ...(own.status === status && given), ...own.headers }
      return answers.of(context, own.body, { status: own.status, headers })
    }
  }
}

const noRelay = `No relay has this URL. \`otpost relay list\` prints the URL of each relay, and ${docsAt('relays')} the paths of each kind.`

/** @throws Failure unauthorized, or rate_limited if the client has sent too many wrong proofs (design D22) */
async function prove(
  ports: RelayPorts,
  context: RequestContext,
  { name, sealedSecret, user }: Relay,
  { proof, headers, body }: { proof: RelayKind['proof']; headers: Headers; body: Uint8Array },
): Promise<void> {
  const secret = ports.sealing.unseal(sealedSecret, name)?.text
  const fault =
    secret === undefined ? sealedByOther : faultOf[proof]({ headers, body, secret, user, now: ports.now() })
  if (fault === undefined) return
  await ports.rejections.count(ports, context)
  throw new Failure('unauthorized', fault)
}

const sealedByOther =
  'Another secret key than that of this server encrypts the secret of the relay. Remove the relay, and add it anew.'

function ofAccount({ relays }: Policy, sid: string | undefined): Relay | undefined {
  return relays.values().find(({ kind, user }) => kind === 'twilio' && user === sid)
}
