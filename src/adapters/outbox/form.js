// @ts-check

// The fields of the form: what they start with, what of them is remembered, and the request they make.

import { find } from './dom.js'
import { asRecord, asText, attempt } from './reading.js'

export const form = /** @type {HTMLFormElement} */ (find('#try'))

/** What was typed as recipient on each channel. @type {Record<string, string>} */
const typedRecipients = { SMS: '', EMAIL: '' }

/** @param {string} name */
export const field = (name) => /** @type {HTMLInputElement} */ (form.elements.namedItem(name))
const channel = () => String(new FormData(form).get('channel'))
export const keyIsShown = () => field('apiKey').type === 'text'

const demoSettings = () => {
  const content = document.querySelector('meta[name="otpost-demo"]')?.getAttribute('content') ?? ''
  return asRecord(attempt(() => JSON.parse(content)))
}

/** @param {string} path @returns {Record<string, string>} */
export const bodyFor = (path) => {
  /** @param {string} name */
  const typed = (name) => field(name).value.trim()
  const app = { appId: typed('appId'), apiKey: typed('apiKey'), brandId: typed('brandId') }
  /** @type {Record<string, string>} */
  const contact = channel() === 'SMS' ? { phone: typed('recipient') } : { email: typed('recipient') }
  return path === '/otp/verify'
    ? { ...app, ...contact, otp: typed('otp') }
    : { ...app, channel: channel(), ...contact }
}

/** @param {string} path @param {Record<string, string>} body @param {boolean} showKey */
export const curlLine = (path, body, showKey) => {
  const json = JSON.stringify(showKey ? body : { ...body, apiKey: '$API_KEY' }).replaceAll("'", `'\\''`)
  // The variable stands outside the single quotes, so that the shell fills it in.
  const data = showKey ? json : json.replace('"apiKey":"$API_KEY"', () => `"apiKey":"'"$API_KEY"'"`)
  return `curl -i ${location.origin}${path} -H 'content-type: application/json' -d '${data}'`
}

/** A line that sends a first code, whatever is still missing in the form. */
export const firstCurl = () => {
  const body = bodyFor('/otp/send')
  body.appId ||= 'APPID'
  body.brandId ||= 'BRAND'
  if (body.phone === '') body.phone = '+1 202 555 0143'
  if (body.email === '') body.email = 'ada@example.com'
  // A demo key is no secret, and the line has to work as it stands.
  return curlLine('/otp/send', body, body.apiKey !== '' && body.apiKey === demoSettings().apiKey)
}

export const showChannel = () => {
  const sms = channel() === 'SMS'
  find('#recipient-label').textContent = sms ? 'Phone' : 'E-mail'
  field('recipient').type = sms ? 'tel' : 'email'
  field('recipient').value = typedRecipients[channel()] ?? ''
}

export const prefill = () => {
  const demo = demoSettings()
  const isDemo = asText(demo.apiKey) !== null
  const stored = asRecord(attempt(() => JSON.parse(sessionStorage.getItem('otpost-try') ?? '{}')))
  if (isDemo) Object.assign(typedRecipients, { SMS: '+1 202 555 0143', EMAIL: 'ada@example.com' })
  Object.assign(typedRecipients, asRecord(stored.typed))
  // The demo's app and key belong together, so a remembered app must not replace one of them.
  for (const name of ['appId', 'brandId'])
    field(name).value = asText(isDemo ? demo[name] : stored[name]) ?? ''
  field('apiKey').value = asText(demo.apiKey) ?? ''
  find('#explain').hidden = isDemo
  const email = /** @type {HTMLInputElement} */ (find('#try [value="EMAIL"]'))
  email.checked = stored.channel === 'EMAIL'
  showChannel()
}

/** Everything but the key and the code. */
export const remember = () => {
  typedRecipients[channel()] = field('recipient').value
  const [appId, brandId] = [field('appId').value, field('brandId').value]
  const json = JSON.stringify({ appId, brandId, channel: channel(), typed: typedRecipients })
  attempt(() => sessionStorage.setItem('otpost-try', json))
}
