import { type Attack, anyOf, attack, noSendLimits, type Target, unless } from './attack.ts'

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

/** Sends each of these; what is wrong unless all are a validation_error and nothing is sent. */
async function unlessInvalid(
  { post, messages }: Target,
  path: string,
  bodies: Readonly<Record<string, object>>,
): Promise<string | undefined> {
  const problems: (string | undefined)[] = []
  for (const [what, body] of Object.entries(bodies))
    problems.push(unless('400 validation_error', await post(path, { ...body }), what))
  const { length } = await messages()
  return anyOf([...problems, length === 0 ? undefined : `${length} messages were sent`])
}

function customer(customerName: string): object {
  return { ...order, variables: { ...order.variables, customerName } }
}

export const contentAttacks: readonly Attack[] = [
  attack('one number 100 times in `to`, in 4 spellings', {}, async (target) => {
    const spellings = [to, '00447911123456', '+44 (0)7911 123456', '447911123456']
    const all = Array.from({ length: 25 }, () => spellings).flat()
    const problem = unless('200', await target.post('/notify', { ...sms, to: all }), 'the request')
    const { length } = await target.messages()
    return anyOf([problem, length === 1 ? undefined : `${length} SMS to one number`])
  }),
  attack('one mail address 100 times in `to`, in 4 spellings', {}, async (target) => {
    const spellings = ['jo@example.com', 'JO@example.com', 'jo@EXAMPLE.com', 'jo@ｅxample.com']
    const all = Array.from({ length: 25 }, () => spellings).flat()
    const problem = unless('200', await target.post('/notify', { ...mail, to: all }), 'the request')
    const { length } = await target.messages()
    return anyOf([problem, length === 1 ? undefined : `${length} mails to one address`])
  }),
  attack('a mail of 7.6 MB from a request of 199 KB', {}, async (target) => {
    // Each field is a row of the table in the mail.
    const data = Object.fromEntries(Array.from({ length: 20_000 }, (_, field) => [field.toString(36), 1]))
    return unlessInvalid(target, '/notify', {
      'many fields': { ...templateMail, template: 'x', data },
      'one long field': { ...templateMail, data: { name: '<'.repeat(100_000) } },
    })
  }),
  attack('bidirectional and invisible characters in messages, subjects and variables', {}, async (target) => {
    const characters = ['\u202e', '\u2066', '\u200b', '\u200f', '\ufeff', '\u00ad', '\u{e0041}']
    const bodies = characters.flatMap((character) => [
      [`a message with ${encodeURI(character)}`, { ...sms, message: `pay ${character}gro.knab` }],
      [`a subject with ${encodeURI(character)}`, { ...mail, subject: `pay ${character}gro.knab` }],
      [`a variable with ${encodeURI(character)}`, customer(`J${character}o`)],
    ])
    return unlessInvalid(target, '/notify', Object.fromEntries(bodies))
  }),
  attack('letters of two scripts in businessName and loginId', noSendLimits, async (target) => {
    return unlessInvalid(target, '/otp/send', {
      'Latin and Cyrillic': { phone: to, businessName: 'HSВС Bank' },
      'Latin and Greek': { phone: to, businessName: 'Αcme' },
      'in loginId': { phone: to, loginId: 'аdmin' },
    })
  }),
  attack(
    'a businessName of another on the template route',
    { OTP_SMS_MODE: 'template', SMS_TEMPLATE: 'outbox' },
    async (target) => {
      const answer = await target.post('/otp/send', { brandId: 'dlt', phone: to, businessName: 'Other Bank' })
      const text = (await target.messages()).at(-1)?.text ?? ''
      return anyOf([
        unless('200', answer, 'send'),
        text.includes('Other Bank') ? text.replace(/\d{6}/, '…') : undefined,
      ])
    },
  ),
  attack('host names with new top-level domains in variables', {}, async (target) => {
    const urls = [
      'evil.support',
      'evil.bank',
      'EVIL.Support',
      'evil.xn--p1ai',
      'see evil.zip now',
      'evil。bank',
    ]
    return unlessInvalid(target, '/notify', Object.fromEntries(urls.map((url) => [url, customer(url)])))
  }),
  attack('fields of two modes or channels on /notify', {}, async (target) => {
    return unlessInvalid(target, '/notify', {
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
    })
  }),
]
