import type { ProviderFile } from '../format.ts'
import africastalking from './africastalking.json'
import androidSmsGateway from './android-sms-gateway.json'
import bandwidth from './bandwidth.json'
import bird from './bird.json'
import bulksms from './bulksms.json'
import clickatell from './clickatell.json'
import clicksend from './clicksend.json'
import cm from './cm.json'
import elks46 from './elks46.json'
import exotel from './exotel.json'
import fast2sms from './fast2sms.json'
import gatewayapi from './gatewayapi.json'
import gupshup from './gupshup.json'
import httpsms from './httpsms.json'
import infobip from './infobip.json'
import jasmin from './jasmin.json'
import kaleyra from './kaleyra.json'
import kannelGet from './kannel-get.json'
import karix from './karix.json'
import kudosity from './kudosity.json'
import netgsm from './netgsm.json'
import playsms from './playsms.json'
import plivo from './plivo.json'
import seven from './seven.json'
import sinch from './sinch.json'
import sipgate from './sipgate.json'
import smsapi from './smsapi.json'
import smsc from './smsc.json'
import telnyx from './telnyx.json'
import termii from './termii.json'
import textbee from './textbee.json'
import textlocal from './textlocal.json'
import twofactor from './twofactor.json'
import unifonic from './unifonic.json'

/** The provider files of the binary, which the tests check. */
export const shippedFiles = [
  africastalking,
  androidSmsGateway,
  bandwidth,
  bird,
  bulksms,
  clickatell,
  clicksend,
  cm,
  elks46,
  exotel,
  fast2sms,
  gatewayapi,
  gupshup,
  httpsms,
  infobip,
  jasmin,
  kaleyra,
  kannelGet,
  karix,
  kudosity,
  netgsm,
  playsms,
  plivo,
  seven,
  sinch,
  sipgate,
  smsapi,
  smsc,
  telnyx,
  termii,
  textbee,
  textlocal,
  twofactor,
  unifonic,
] as readonly unknown[] as readonly ProviderFile[]
