import { type Row, row } from '../support/rows.ts'

export const templates = ['ORDER_PLACED', 'OUT_FOR_DELIVERY', 'ORDER_DELIVERED'] as const

/** Valid variables of each template (D10). */
export const variablesOf = {
  ORDER_PLACED: { customerName: 'Jane', orderId: 'A-1', orderDate: '2026-01-01' },
  OUT_FOR_DELIVERY: { customerName: 'Jane', orderId: 'A-1' },
  ORDER_DELIVERED: { customerName: 'Jane', orderId: 'A-1', deliveryDateTime: '2026-01-01T12:30' },
} as const

export const to = ['+91 98123 40009']
export const legacy = { channel: 'SMS', brandId: 'store', to, message: 'Hello' }
export const placed = {
  channel: 'SMS',
  brandId: 'store',
  to,
  templateKey: 'ORDER_PLACED',
  variables: variablesOf.ORDER_PLACED,
}
export const delivered = { ...placed, templateKey: 'ORDER_DELIVERED', variables: variablesOf.ORDER_DELIVERED }
export const html = { channel: 'EMAIL', to: ['jane@example.com'], subject: 'News', html: '<p>Hello</p>' }
export const template = { channel: 'EMAIL', to: ['jane@example.com'], subject: 'News', template: 'Hello' }
export const without = <Body extends object>(body: Body, field: keyof Body) => ({
  ...body,
  [field]: undefined,
})
export const withVariable = (name: string, value: unknown) => ({
  ...placed,
  variables: { ...placed.variables, [name]: value },
})

/** The responses of /notify that depend on its fields only, by the rules of spec 4.4. */
export const tables: Readonly<Record<string, readonly Row[]>> = {
  'the channel (rules 4 and 12, D27)': [
    row('400 validation_error channel', 'missing', without(legacy, 'channel')),
    row('400 validation_error channel', 'null', { ...legacy, channel: null }),
    row('400 invalid_channel', 'FAX', { ...legacy, channel: 'FAX' }),
    row('200', 'SMS in lower case', { ...legacy, channel: 'sms' }),
    row('200', 'EMAIL in mixed case', { ...html, channel: 'eMail' }),
  ],
  'the recipients (rule 12, D4, D5, D6)': [
    row('400 validation_error to', 'SMS without to', without(legacy, 'to')),
    row('400 validation_error to', 'SMS to null', { ...legacy, to: null }),
    row('400 validation_error to', 'SMS to a string', { ...legacy, to: '15559300001' }),
    row('400 validation_error to', 'SMS to an object', { ...legacy, to: { 0: '15559300001' } }),
    row('400 validation_error to', 'SMS to an empty list', { ...legacy, to: [] }),
    row('400 validation_error to[0]', 'SMS to a number', { ...legacy, to: [15559300001] }),
    row('400 validation_error to[0]', 'SMS to [null]', { ...legacy, to: [null] }),
    row('400 validation_error to[0]', 'SMS to an invalid phone', { ...legacy, to: ['call me'] }),
    row('400 validation_error to[1]', 'SMS to a valid and an invalid phone', {
      ...legacy,
      to: [...to, '123456'],
    }),
    row('400 validation_error to', 'SMS to 101 recipients', { ...legacy, to: Array(101).fill(to[0]) }),
    row('200', 'SMS to 100 recipients', { ...legacy, to: Array(100).fill(to[0]) }),
    row('400 validation_error to', 'EMAIL without to', without(html, 'to')),
    row('400 validation_error to', 'EMAIL to a string', { ...html, to: 'jane@example.com' }),
    row('400 validation_error to', 'EMAIL to an empty list', { ...html, to: [] }),
    row('400 validation_error to[0]', 'EMAIL to an invalid e-mail address', { ...html, to: ['nobody'] }),
    row('400 validation_error to[0]', 'EMAIL to a phone', { ...html, to }),
    row('400 validation_error to', 'EMAIL to 101 recipients', {
      ...html,
      to: Array(101).fill('jane@example.com'),
    }),
  ],
  'fields of another channel or mode (spec 7, D27, D37)': [
    ...(['subject', 'html', 'template'] as const).flatMap((name) => [
      row(`400 validation_error ${name}`, `legacy SMS with ${name}`, { ...legacy, [name]: 'Hello' }),
      row(`400 validation_error ${name}`, `template SMS with ${name}`, { ...placed, [name]: 'Hello' }),
    ]),
    row('400 validation_error data', 'legacy SMS with data', { ...legacy, data: {} }),
    row('400 validation_error data', 'template SMS with data', { ...placed, data: {} }),
    row('400 validation_error subject', 'legacy SMS with an empty subject', { ...legacy, subject: '' }),
    row('200', 'SMS with the e-mail fields as null', {
      ...placed,
      subject: null,
      html: null,
      template: null,
      data: null,
    }),
    row('200', 'legacy SMS with variables', { ...legacy, variables: { colour: 'red' } }),
    ...[html, template].flatMap((mail) => [
      row('400 validation_error message', `EMAIL ${Object.keys(mail)[3]} with message`, {
        ...mail,
        message: 'Hello',
      }),
      row('400 validation_error templateKey', `EMAIL ${Object.keys(mail)[3]} with templateKey`, {
        ...mail,
        templateKey: 'ORDER_PLACED',
      }),
      row('400 validation_error variables', `EMAIL ${Object.keys(mail)[3]} with variables`, {
        ...mail,
        variables: {},
      }),
      row('200', `EMAIL ${Object.keys(mail)[3]} with the SMS fields as null`, {
        ...mail,
        message: null,
        templateKey: null,
        variables: null,
      }),
    ]),
    row('400 validation_error data', 'EMAIL html with data', { ...html, data: { a: 'b' } }),
    row('200', 'EMAIL html with null data', { ...html, data: null }),
  ],
  'invisible characters (D30)': [
    ...[
      '\u202e',
      '\u2067',
      '\u200b',
      '\u00ad',
      '\ufeff',
      '\u3164',
      '\u180b',
      '\u{e0067}',
      '\u{e0100}',
    ].flatMap((character) => {
      const hidden = `a${character}b`
      const name = `U+${character.codePointAt(0)?.toString(16)}`
      return [
        row('400 validation_error message', `${name} in message`, { ...legacy, message: hidden }),
        row(
          '400 validation_error variables.customerName',
          `${name} in a variable`,
          withVariable('customerName', hidden),
        ),
        row('400 validation_error subject', `${name} in subject`, { ...html, subject: hidden }),
        row('400 validation_error template', `${name} in template`, { ...template, template: hidden }),
        row('400 validation_error data', `${name} in data`, { ...template, data: { a: hidden } }),
        row('400 validation_error data', `${name} in nested data`, {
          ...template,
          data: { a: [{ [hidden]: 1 }] },
        }),
        row('400 validation_error data', `${name} in a key of data`, { ...template, data: { [hidden]: 1 } }),
      ]
    }),
    ...[
      '\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645',
      '\u0915\u094d\u200d\u0937',
      '\ud83d\udc69\u200d\ud83d\udcbb \u2764\ufe0f \u2764\ufe0e',
      // Visible format characters: number sign, end of ayah.
      '\u0600\u0661\u06dd',
    ].flatMap((text) => [
      row('200', `the message ${text}`, { ...legacy, message: text }),
      row('200', `the customerName ${text}`, withVariable('customerName', text)),
      row('200', `the subject ${text}`, { ...template, subject: text, data: { a: text } }),
    ]),
    row('400 validation_error data', 'a control character in data', { ...template, data: { a: 'a\u0000b' } }),
    row('400 validation_error data', 'half a surrogate pair in data', {
      ...template,
      data: { a: 'a\ud83d' },
    }),
    row('200', 'line breaks and tabs in message', { ...legacy, message: 'a\r\n\tb' }),
    row('200', 'invisible characters in html, which is as it was given', {
      ...html,
      html: '<p>a&shy;\u00ad\u200e</p>',
    }),
  ],
  'the size of a mail (D30)': [
    row('400 validation_error none', 'a table of 15,000 rows', {
      ...template,
      data: Object.fromEntries(Array.from({ length: 15_000 }, (_, index) => [`a${index}`, 1])),
    }),
    row('400 validation_error none', '3,333 paragraphs', { ...template, template: 'a\n\n'.repeat(3333) }),
    row('400 validation_error none', 'a value that is escaped', {
      ...template,
      data: { a: "'".repeat(60_000) },
    }),
    row('400 validation_error none', 'more bytes than the limit, in fewer characters', {
      ...template,
      data: { a: '\u20ac'.repeat(50_000) },
    }),
    row('200', 'a value of 120,000 characters', { ...template, data: { a: 'a'.repeat(120_000) } }),
    row('200', 'html of 85,000 characters of three bytes', { ...html, html: '\u20ac'.repeat(85_000) }),
  ],
  'legacy SMS (rules 1, 2 and 8, D4)': [
    row('200', 'with a message', legacy),
    row('200', 'with a null templateKey', { ...legacy, templateKey: null }),
    row('200', 'of 1,600 characters', { ...legacy, message: 'm'.repeat(1600) }),
    row('400 validation_error message', 'of 1,601 characters', { ...legacy, message: 'm'.repeat(1601) }),
    row('400 validation_error message', 'without a message', without(legacy, 'message')),
    row('400 validation_error message', 'with an empty message', { ...legacy, message: '' }),
    row('400 validation_error message', 'with a null message', { ...legacy, message: null }),
    row('400 validation_error message', 'with message as a number', { ...legacy, message: 5 }),
    row('400 validation_error none', 'with message and templateKey', { ...placed, message: 'Hello' }),
    row('200', 'of the brand that businessName names', {
      ...legacy,
      brandId: undefined,
      variables: { businessName: 'the store' },
    }),
    row('400 validation_error otp', 'with otp', { ...legacy, otp: '123456' }),
  ],
  'the brand of an SMS (rule 8, D7, D9)': [
    row('400 brand_id_required', 'neither brandId nor businessName', without(legacy, 'brandId')),
    row('400 brand_id_required', 'the same with a template', without(placed, 'brandId')),
    row('400 brand_id_required', 'a null brandId', { ...legacy, brandId: null }),
    row('400 brand_id_required', 'brandId as a number', { ...legacy, brandId: 5 }),
    row('200', 'brandId in another case', { ...legacy, brandId: ' STORE ' }),
    row('403 brand_not_approved', 'an unknown brand', { ...legacy, brandId: 'nobody' }),
    row('403 brand_not_approved', 'a pending brand', { ...legacy, brandId: 'waiting' }),
    row('403 brand_suspended', 'a suspended brand', { ...legacy, brandId: 'halted' }),
    row('200', 'businessName as display name', {
      ...without(placed, 'brandId'),
      variables: { ...placed.variables, businessName: 'The Store' },
    }),
    row('200', 'businessName as slug, in capitals', {
      ...without(placed, 'brandId'),
      variables: { ...placed.variables, businessName: 'STORE' },
    }),
    row('403 brand_not_approved', 'an unknown businessName', {
      ...without(placed, 'brandId'),
      variables: { ...placed.variables, businessName: 'Nobody' },
    }),
    row('403 brand_not_approved', 'businessName of a pending brand', {
      ...without(placed, 'brandId'),
      variables: { ...placed.variables, businessName: 'Waiting Room' },
    }),
    row('403 brand_suspended', 'businessName of a suspended brand', {
      ...without(placed, 'brandId'),
      variables: { ...placed.variables, businessName: 'Halted' },
    }),
    row('200', 'brandId and its display name', withVariable('businessName', 'the STORE')),
    row('200', 'brandId and its slug', withVariable('businessName', 'store')),
    row(
      '400 unsupported_business',
      'brandId and the name of another brand',
      withVariable('businessName', 'Acme'),
    ),
    row(
      '400 unsupported_business',
      'brandId with an unknown businessName',
      withVariable('businessName', 'Nobody'),
    ),
    row('200', 'brandId with a null businessName', withVariable('businessName', null)),
    row('403 template_not_allowed', 'a template not enabled', { ...placed, brandId: 'acme' }),
  ],
  'template SMS (rules 2, 5, 6 and 7)': [
    ...templates.map((templateKey) =>
      row('200', templateKey, { ...placed, templateKey, variables: variablesOf[templateKey] }),
    ),
    row('200', 'with a null message', { ...placed, message: null }),
    row('400 otp_template_not_supported', 'LOGIN_OTP', { ...placed, templateKey: 'LOGIN_OTP' }),
    row('400 otp_template_not_supported', 'LOGIN_OTP_WITH_ID', {
      ...placed,
      templateKey: 'LOGIN_OTP_WITH_ID',
    }),
    row('400 otp_template_not_supported', 'LOGIN_OTP of a brand without templates', {
      ...placed,
      brandId: 'acme',
      templateKey: 'LOGIN_OTP',
    }),
    row('400 invalid_template', 'an unknown key', { ...placed, templateKey: 'BIRTHDAY' }),
    row('400 invalid_template', 'a key in lower case', { ...placed, templateKey: 'order_placed' }),
    row('400 invalid_template', 'the key __proto__', { ...placed, templateKey: '__proto__' }),
    row('400 invalid_template', 'the key constructor', { ...placed, templateKey: 'constructor' }),
    row('400 invalid_template', 'the key toString', { ...placed, templateKey: 'toString' }),
    row('400 validation_error templateKey', 'a key that is a number', { ...placed, templateKey: 5 }),
    row('400 validation_error variables', 'no variables', without(placed, 'variables')),
    row('400 validation_error variables', 'null variables', { ...placed, variables: null }),
    row('400 validation_error variables', 'variables as a string', { ...placed, variables: 'Jane' }),
    row('400 validation_error variables', 'variables as an array', { ...placed, variables: ['Jane'] }),
    row('400 validation_error otp', 'otp at the top', { ...placed, otp: '123456' }),
    row('400 validation_error otp', 'otp at the top of LOGIN_OTP', {
      ...placed,
      templateKey: 'LOGIN_OTP',
      otp: '123456',
    }),
    row('400 validation_error variables.otp', 'otp among the variables', withVariable('otp', '123456')),
    row('200', 'an unknown variable', withVariable('colour', { red: true })),
    row('200', 'an unknown variable that is an object', withVariable('constructor', 'x')),
  ],
  'missing variables (rule 7, D10)': templates.flatMap((templateKey) =>
    Object.keys(variablesOf[templateKey]).map((name) =>
      row('400 missing_variable', `${templateKey} without ${name}`, {
        ...placed,
        templateKey,
        variables: { ...variablesOf[templateKey], [name]: undefined },
      }),
    ),
  ),
  // Rows for each rule of a value are in test/domain/templates.test.ts.
  'values of variables (D10)': [
    row('200', 'customerName of 40 characters', withVariable('customerName', '\u0928'.repeat(40))),
    row(
      '400 validation_error variables.customerName',
      'customerName of 41 characters',
      withVariable('customerName', 'J'.repeat(41)),
    ),
    row(
      '400 validation_error variables.customerName',
      'customerName with a URL',
      withVariable('customerName', 'see HTTPS://evil.example'),
    ),
    row(
      '400 validation_error variables.customerName',
      'customerName with a host',
      withVariable('customerName', 'evil.support'),
    ),
    row(
      '400 validation_error variables.orderId',
      'orderId with a host',
      withVariable('orderId', 'evil.bank/A1'),
    ),
    row('200', 'orderId with every sign', withVariable('orderId', 'A1._/#-')),
    row(
      '400 validation_error variables.orderId',
      'orderId with a sign first',
      withVariable('orderId', '-A1'),
    ),
    row('400 validation_error variables.orderId', 'orderId as a number', withVariable('orderId', 1001)),
    row('200', 'orderDate on a leap day', withVariable('orderDate', '2024-02-29')),
    row(
      '400 validation_error variables.orderDate',
      'orderDate a leap day of no leap year',
      withVariable('orderDate', '2026-02-29'),
    ),
    ...(['2026-01-01T12:30:45.678Z', '2026-01-01T12:30+05:30'] as const).map((deliveryDateTime) =>
      row('200', `deliveryDateTime ${deliveryDateTime}`, {
        ...delivered,
        variables: { ...delivered.variables, deliveryDateTime },
      }),
    ),
    ...(['2026-01-01', '2026-02-30T12:30', 'tomorrow', 5] as const).map((deliveryDateTime) =>
      row('400 validation_error variables.deliveryDateTime', `deliveryDateTime ${deliveryDateTime}`, {
        ...delivered,
        variables: { ...delivered.variables, deliveryDateTime },
      }),
    ),
  ],
  'e-mail (rule 3, D4)': [
    row('200', 'with html', html),
    row('200', 'with a template', template),
    row('200', 'with html and a null template', { ...html, template: null }),
    row('200', 'with a template and data', { ...template, data: { a: 'b' } }),
    row('200', 'with a template and null data', { ...template, data: null }),
    row('200', 'of an unknown brand, which is not checked', { ...html, brandId: 'nobody' }),
    row('200', 'of a suspended brand, which is not checked', { ...html, brandId: 'halted' }),
    row('400 validation_error none', 'with html and template', { ...html, template: 'Hello' }),
    row('400 validation_error none', 'with neither html nor template', without(html, 'html')),
    row('400 validation_error message', 'with a message only', {
      ...without(html, 'html'),
      message: 'Hello',
    }),
    row('400 validation_error subject', 'without a subject', without(html, 'subject')),
    row('400 validation_error subject', 'with an empty subject', { ...html, subject: '' }),
    row('400 validation_error subject', 'with subject as a number', { ...html, subject: 5 }),
    row('200', 'with a subject of 255 characters', { ...html, subject: 's'.repeat(255) }),
    row('400 validation_error subject', 'with a subject of 256 characters', {
      ...html,
      subject: 's'.repeat(256),
    }),
    row('400 validation_error subject', 'with a line feed in the subject', {
      ...html,
      subject: 'a\nBcc: b@example.com',
    }),
    row('400 validation_error subject', 'with a carriage return in the subject', {
      ...html,
      subject: 'a\rb',
    }),
    row('400 validation_error html', 'with empty html', { ...html, html: '' }),
    row('400 validation_error html', 'with html as a number', { ...html, html: 5 }),
    row('200', 'with html of 200,000 characters', { ...html, html: 'h'.repeat(200_000) }),
    row('400 validation_error html', 'with html of 200,001 characters', {
      ...html,
      html: 'h'.repeat(200_001),
    }),
    row('200', 'with a template of 10,000 characters', { ...template, template: 't'.repeat(10_000) }),
    row('400 validation_error template', 'with a template of 10,001 characters', {
      ...template,
      template: 't'.repeat(10_001),
    }),
    row('400 validation_error template', 'with an empty template', { ...template, template: '' }),
    row('400 validation_error template', 'with template as a number', { ...template, template: 5 }),
    row('400 validation_error data', 'with data as a string', { ...template, data: 'x' }),
    row('400 validation_error data', 'with data as an array', { ...template, data: [] }),
    row('400 validation_error data', 'with data as a number', { ...template, data: 5 }),
    row('400 validation_error otp', 'with otp', { ...html, otp: '123456' }),
    row('200', 'with otp as data', { ...template, template: '{{otp}}', data: { otp: 'x' } }),
  ],
  'placeholders of an e-mail template (D11)': [
    row('200', 'with data', { ...template, template: 'Hi {{name}}', data: { name: 'Jane' } }),
    row('400 missing_variable', 'without data', { ...template, template: 'Hi {{name}}' }),
    row('400 missing_variable', 'without theirs', { ...template, template: 'Hi {{name}}', data: { age: 3 } }),
    row('400 missing_variable', 'constructor', { ...template, template: '{{constructor}}', data: {} }),
    row('400 missing_variable', '__proto__', { ...template, template: '{{__proto__}}', data: {} }),
    row('400 missing_variable', 'toString', { ...template, template: '{{toString}}', data: {} }),
  ],
  'credentials (spec 5)': [
    row('401 unauthorized', 'SMS without appId', { ...legacy, appId: undefined }),
    row('401 unauthorized', 'SMS without apiKey', { ...legacy, apiKey: undefined }),
    row('403 forbidden', 'SMS with a wrong key', { ...legacy, apiKey: 'wrong' }),
    row('401 unauthorized', 'EMAIL without appId', { ...html, appId: undefined }),
    row('401 unauthorized', 'EMAIL without apiKey', { ...html, apiKey: undefined }),
    row('403 forbidden', 'EMAIL with a wrong key', { ...html, apiKey: 'wrong' }),
  ],
}

/** Brands of the rows, beside acme. */
export const notifyBrands = {
  store: { displayName: 'The Store', notifyTemplates: templates },
  waiting: { displayName: 'Waiting Room', status: 'pending' },
  halted: { displayName: 'Halted', status: 'suspended' },
} as const
