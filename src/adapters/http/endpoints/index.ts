import type { Endpoint, EndpointOperation } from '../endpoint.ts'
import { listBrands } from './brands.ts'
import { getCatalog } from './catalog.ts'
import { getHealth, getLiveness, getReadiness } from './health.ts'
import { requestIntegration } from './integration-request.ts'
import { getKeySet } from './key-set.ts'
import { getMessageStatus } from './message-status.ts'
import { getMetrics } from './metrics.ts'
import { notify } from './notify.ts'
import { otpResend, otpSend } from './otp-send.ts'
import { otpVerify } from './otp-verify.ts'
import { listOutboxMessages } from './outbox-messages.ts'
import { getRoot } from './root.tsx'

/** What server.ts mounts. */
export const endpoints: readonly Endpoint[] = [
  otpSend,
  otpResend,
  otpVerify,
  notify,
  getMessageStatus,
  getCatalog,
  requestIntegration,
  listBrands,
  getKeySet,
  getHealth,
  getLiveness,
  getReadiness,
]

/** What the API description has: also operations that a server has only with some settings. */
export const operations: readonly EndpointOperation[] = [
  getRoot,
  ...endpoints,
  getMetrics,
  listOutboxMessages,
]
