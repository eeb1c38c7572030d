import type { ProviderFile } from '../format.ts'
import africastalking from './africastalking.json'
import bandwidth from './bandwidth.json'
import bird from './bird.json'
import bulksms from './bulksms.json'
import clickatell from './clickatell.json'
import clicksend from './clicksend.json'
import cm from './cm.json'
import elks46 from './elks46.json'
import gatewayapi from './gatewayapi.json'
import infobip from './infobip.json'
import kannelGet from './kannel-get.json'
import plivo from './plivo.json'
import seven from './seven.json'
import sinch from './sinch.json'
import sipgate from './sipgate.json'
import smsapi from './smsapi.json'
import telnyx from './telnyx.json'

/** The provider files of the binary, which the tests check. */
export const shippedFiles = [
  africastalking,
  bandwidth,
  bird,
  bulksms,
  clickatell,
  clicksend,
  cm,
  elks46,
  gatewayapi,
  infobip,
  kannelGet,
  plivo,
  seven,
  sinch,
  sipgate,
  smsapi,
  telnyx,
] as readonly unknown[] as readonly ProviderFile[]
