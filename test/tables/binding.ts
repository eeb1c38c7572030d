const payment = { amount: '1250.00', currency: 'INR', payee: 'City Water' }

/** What the purpose and the transaction of /otp/send, /otp/resend and /otp/verify may be (design D55), with the field at fault. */
export const bindingRows: readonly (readonly [field: string | null, name: string, fields: object])[] = [
  [null, 'null fields', { purpose: null, transaction: null }],
  [null, 'a purpose of 1 character', { purpose: 'a' }],
  [null, 'a purpose of 40 characters', { purpose: `a${'9_-x'.repeat(9)}bcd` }],
  ['purpose', 'a purpose of 41 characters', { purpose: 'a'.repeat(41) }],
  ...['', 'Login', '1st', '_a', '-a', 'sign in', 'a.b', 'a\n', 'é'].map(
    (purpose) => ['purpose', `the purpose ${JSON.stringify(purpose)}`, { purpose }] as const,
  ),
  ...[7, true, ['login'], {}].map(
    (purpose) => ['purpose', `the purpose ${JSON.stringify(purpose)}`, { purpose }] as const,
  ),
  [null, 'a transaction', { purpose: 'pay', transaction: payment }],
  ...['payment', 7, true, [], [payment], {}].map(
    (transaction) =>
      [
        JSON.stringify(transaction) === '{}' ? 'transaction.amount' : 'transaction',
        `the transaction ${JSON.stringify(transaction)}`,
        { transaction },
      ] as const,
  ),
  ...['note', 'Amount', 'constructor', '__proto__'].map(
    (name) =>
      [
        'transaction',
        `a transaction with ${name}`,
        { transaction: JSON.parse(`{${JSON.stringify(payment).slice(1, -1)},"${name}":null}`) },
      ] as const,
  ),
  ...[
    '0',
    '0.000',
    '007.5',
    '999999999999',
    '999999999999.999',
    '.5',
    '5.',
    '1e3',
    '-1',
    '+1',
    '1,5',
    '1 000',
    '',
    ' 1',
    '1\n',
  ]
    .concat('1000000000000', '1.2345', '\u0661', '0x10', 'Infinity')
    .map(
      (amount) =>
        [
          /^\d{1,12}(\.\d{1,3})?$/.test(amount) && !amount.endsWith('\n') ? null : 'transaction.amount',
          `the amount ${JSON.stringify(amount)}`,
          { transaction: { ...payment, amount } },
        ] as const,
    ),
  ...[1250, null, undefined, ['1']].map(
    (amount) =>
      [
        'transaction.amount',
        `the amount ${JSON.stringify(amount)}`,
        { transaction: { ...payment, amount } },
      ] as const,
  ),
  ...['inr', 'Usd', 'JPY', 'KWD'].map(
    (currency) => [null, `the currency ${currency}`, { transaction: { ...payment, currency } }] as const,
  ),
  ...['INRR', 'IN', 'XYZ', 'XXX', 'XTS', 'XAU', 'CNH', 'ITL', 'DEM', 'HRK', '', 'ıNR', 'units', 5, null].map(
    (currency) =>
      [
        'transaction.currency',
        `the currency ${JSON.stringify(currency)}`,
        { transaction: { ...payment, currency } },
      ] as const,
  ),
  ...['x', 'पानी'.repeat(10), 'St. John & Co. <b>', 'x'.repeat(40)].map(
    (payee) => [null, `the payee ${payee}`, { transaction: { ...payment, payee } }] as const,
  ),
  ...['', ' ', 'x'.repeat(41), 'pay.example.com', 'see https://x', 'a\nb', 'a\u202eb', '\ud83d', 5, null]
    .concat('\u200c', '\ufe0f', '\u2800', '-', '\u{1f600}')
    .map(
      (payee) =>
        [
          'transaction.payee',
          `the payee ${JSON.stringify(payee)}`,
          { transaction: { ...payment, payee } },
        ] as const,
    ),
]
