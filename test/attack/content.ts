import { credentials, verdict } from '../support/app.ts'
import { otpost } from '../support/server.ts'
import { type Attack, attack, type Check, noSendLimits, type Target } from './attack.ts'

const to = '+44 7911 123456'
const sms = { channel: 'SMS', brandId: 'acme', to: [to], message: 'Your table is ready.' }
const order = {
  channel: 'SMS',
  brandId: 'acme',
  to: [to],
  templateKey: 'OUT_FOR_DELIVERY',
  variables: { customerName: 'Jo', orderId: 'A-1' },
}
const mail = { channel: 'EMAIL', to: ['jo@example.com'], subject: 'Ready', html: '<p>Ready</p>' }
const templateMail = { ...mail, html: undefined, template: 'Ready, {{name}}', data: { name: 'Jo' } }

function customer(customerName: string): object {
  return { ...order, variables: { ...order.variables, customerName } }
}

type Bodies = Readonly<Record<string, object>>

/** All of these requests must be a validation_error, and nothing may be sent. */
async function checkInvalid(target: Target, check: Check, path: string, bodies: Bodies): Promise<void> {
  for (const [what, body] of Object.entries(bodies)) {
    const answer = verdict(await target.post(path, { ...body }))
    check(answer === '400 validation_error', `${what}: ${answer}`)
  }
  const { length } = await target.messages()
  check(length === 0, `${length} messages were sent`)
}

/** An attack that holds where all of these calls of /notify are a validation_error. */
function invalidNotify(title: string, bodies: Bodies): Attack {
  return attack(title, {}, (target, check) => checkInvalid(target, check, '/notify', bodies))
}

/** An attack that holds where one recipient, spelled in so many ways, gets one message. */
function repeated(body: object, spellings: readonly string[]): Attack {
  const title = `${spellings[0]} 100 times in \`to\`, in ${spellings.length} spellings`
  return attack(title, {}, async (target, check) => {
    const all = Array.from({ length: 100 / spellings.length }, () => spellings).flat()
    const answer = verdict(await target.post('/notify', { ...body, to: all }))
    check(answer === '200', `the request: ${answer}`)
    const { length } = await target.messages()
    check(length === 1, `${length} messages to one recipient`)
  })
}

/** Direction marks, and characters without a glyph. */
const invisible = ['\u202e', '\u2066', '\u200b', '\u200f', '\ufeff', '\u00ad', '\u{e0041}']
const hostNames = [
  'evil.support',
  'evil.bank',
  'EVIL.Support',
  'evil.xn--p1ai',
  'see evil.zip now',
  'evil。bank',
]

export const contentAttacks: readonly Attack[] = [
  repeated(sms, [to, '00447911123456', '+44 (0)7911 123456', '447911123456']),
  repeated(mail, ['jo@example.com', 'JO@example.com', 'jo@EXAMPLE.com', 'jo@ｅxample.com']),
  invalidNotify('a mail of 7.6 MB from a request of 199 KB', {
    // Each field is a row of the table in the mail.
    'many fields': {
      ...templateMail,
      template: 'x',
      data: Object.fromEntries(Array.from({ length: 20_000 }, (_, field) => [field.toString(36), 1])),
    },
    'one long field': { ...templateMail, data: { name: '<'.repeat(100_000) } },
  }),
  invalidNotify(
    'bidirectional and invisible characters in messages, subjects and variables',
    Object.fromEntries(
      invisible.flatMap((character) => [
        [`a message with ${encodeURI(character)}`, { ...sms, message: `pay ${character}gro.knab` }],
        [`a subject with ${encodeURI(character)}`, { ...mail, subject: `pay ${character}gro.knab` }],
        [`a variable with ${encodeURI(character)}`, customer(`J${character}o`)],
      ]),
    ),
  ),
  attack('letters of two scripts in businessName and loginId', noSendLimits, (target, check) =>
    checkInvalid(target, check, '/otp/send', {
      'Latin and Cyrillic': { phone: to, businessName: 'HSВС Bank' },
      'Latin and Greek': { phone: to, businessName: 'Αcme' },
      'in loginId': { phone: to, loginId: 'аdmin' },
    }),
  ),
  attack(
    'the name of another brand, from an app that is limited to one',
    noSendLimits,
    async (target, check) => {
      const { appId, apiKey } = credentials
      const env = { ...target.env, APP_CREDENTIALS: JSON.stringify({ [appId]: apiKey }) }
      const { code, stderr } = await otpost(['app', 'set', appId, '--brand', 'second'], env)
      check(code === 0, stderr)
      const recipients = [{ phone: to }, { channel: 'EMAIL', email: 'jo@example.com' }]
      const names = ['Brand acme', 'BRAND  ACME', 'Ｂrand acme', 'Brand-Acme', 'Brand асме']
      const bodies = names.flatMap((businessName) =>
        recipients.map((recipient) => [
          `${businessName} to ${Object.values(recipient).at(-1)}`,
          { ...recipient, brandId: 'second', businessName },
        ]),
      )
      await checkInvalid(target, check, '/otp/send', Object.fromEntries(bodies))
    },
  ),
  attack(
    'a businessName of another on the template route',
    { OTP_SMS_MODE: 'template' },
    async (target, check) => {
      await target.post('/otp/send', { brandId: 'dlt', phone: '+91 98123 45678', businessName: 'Other Bank' })
      const text = (await target.messages()).at(-1)?.text ?? 'nothing was sent'
      check(text.includes('Brand dlt'), text.replace(/\d{6}/, '…'))
    },
  ),
  invalidNotify(
    'host names with new top-level domains in variables',
    Object.fromEntries(hostNames.map((name) => [name, customer(name)])),
  ),
  invalidNotify('fields of two modes or channels on /notify', {
    'subject with SMS': { ...sms, subject: 'Ready' },
    'html with SMS': { ...sms, html: '<p>' },
    'template with SMS': { ...sms, template: 'x' },
    'data with SMS': { ...sms, data: {} },
    'subject with a template SMS': { ...order, subject: 'Ready' },
    'message with EMAIL': { ...mail, message: 'x' },
    'templateKey with EMAIL': { ...mail, templateKey: 'ORDER_PLACED' },
    'variables with EMAIL': { ...templateMail, variables: {} },
    'html with template': { ...templateMail, html: '<p>' },
    'message with templateKey': { ...order, message: 'x' },
  }),
]
