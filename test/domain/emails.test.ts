import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { textOf } from '../../src/adapters/email/text.ts'
import { Failure } from '../../src/domain/ground/failures.ts'
import { directionOf } from '../../src/domain/ground/languages.ts'
import { type BrandChange, freshBrand } from '../../src/domain/operator/brands.ts'
import { type BrandText, BrandTexts } from '../../src/domain/texts/brand-texts.ts'
import { otpMail, renderMail } from '../../src/domain/texts/emails.ts'
import { escapeHtml, textOn } from '../../src/domain/texts/mail-layout.ts'
import { otpLanguages } from '../../src/domain/texts/otp-texts.ts'

const nasty = `<script>alert("1")</script>&'`
const escaped = '&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#39;'

function failureOf(make: () => unknown): Pick<Failure, 'kind' | 'message'> | 'none' {
  try {
    make()
    return 'none'
  } catch (error) {
    if (error instanceof Failure) return { kind: error.kind, message: error.message }
    throw error
  }
}

describe('escapeHtml', () => {
  const rows: readonly (readonly [string, string])[] = [
    ['', ''],
    ['plain text', 'plain text'],
    [nasty, escaped],
    ['&lt;', '&amp;lt;'],
    ['a && b', 'a &amp;&amp; b'],
    ['ünï 😀', 'ünï 😀'],
  ]
  test.each(rows)('turns %p into %p', (text, html) => {
    expect(escapeHtml(text)).toBe(html)
  })
})

/** @param texts mails of codes, by language */
function brandWith(look: BrandChange = {}, texts: Readonly<Record<string, Partial<BrandText>>> = {}) {
  const all = Object.entries(texts).map(([lang, text]) => ({
    templateKey: 'LOGIN_OTP',
    channel: 'EMAIL' as const,
    lang,
    subject: `${lang} subject`,
    text: '{{otp}}',
    html: null,
    version: 1,
    updatedAt: 0,
    ...text,
  }))
  const named = { ...freshBrand('acme'), displayName: 'Acme' }
  return { ...named, ...look, texts: new BrandTexts(all, new Map()) } as typeof named
}

const code = { code: '012345', businessName: undefined, lifetimeSeconds: 300 }

describe('the mail of a code', () => {
  const mail = otpMail(brandWith(), { code: '012345', businessName: nasty, lifetimeSeconds: 300 }, undefined)

  test('has the code and its lifetime in both parts', () => {
    for (const part of [mail.html, mail.text]) {
      expect(part).toContain('012345')
      expect(part).toContain('5 minutes')
    }
  })

  test('has no six digits but the code in the text', () => {
    expect(mail.text.match(/(?<!\d)\d{6}(?!\d)/g)).toEqual(['012345'])
  })

  test('shows any business name as text', () => {
    expect(mail.html).not.toContain('<script')
    expect(mail.html).toContain(`<bdi>${escaped}</bdi></h1>`)
    expect(mail.text).toContain(nasty)
  })

  test('does not have the code in its subject', () => {
    expect(mail.subject).not.toContain('012345')
  })
})

describe("the mail of a code in the brand's words (design D47)", () => {
  const own = {
    subject: 'Acme: {{businessName}}, {{minutes}} min',
    text: 'Hallo <{{businessName}}>,\n\n  {{otp}}\n\ngültig {{minutes}} Minuten\r\nund {curly} $& bleibt.\n',
  }

  test('has subject and text byte for byte', () => {
    const { subject, text } = otpMail(brandWith({}, { de: own }), code, 'de-AT')
    expect(subject).toBe('Acme: Acme, 5 min')
    expect(text).toBe('Hallo <Acme>,\n\n  012345\n\ngültig 5 Minuten\r\nund {curly} $& bleibt.\n')
  })

  test('has HTML made of the text, in the language, with the code in its box', () => {
    const { html } = otpMail(brandWith({}, { de: own }), { ...code, businessName: nasty }, 'de')
    expect(html).toContain(`>Hallo &lt;<bdi>${escaped}</bdi>&gt;,</p>`)
    expect(html).toContain('>gültig 5 Minuten<br>und {curly} $&amp; bleibt.</p>')
    expect(html).toMatch(/<td class="code" dir="ltr"[^>]*>012345<\/td>/)
    expect(html).toContain('<html lang="de" dir="ltr">')
  })

  test('has a code within a sentence', () => {
    const { html } = otpMail(brandWith({}, { en: { text: 'Your code is {{otp}}.' } }), code, undefined)
    expect(html).toContain('>Your code is <b dir="ltr">012345</b>.</p>')
    expect(html).not.toContain('class="code"')
  })

  test('has the HTML of the brand byte for byte, with values that are escaped', () => {
    const html = `<!doctype html>\r\n<p title='{{businessName}}' data-x="$&">{{otp}} &nbsp;{{minutes}}<p>\t\n`
    const mail = otpMail(
      brandWith({ color: '#0b57d0' }, { en: { html } }),
      { ...code, businessName: nasty },
      'en',
    )
    expect(mail.html).toBe(`<!doctype html>\r\n<p title='${escaped}' data-x="$&">012345 &nbsp;5<p>\t\n`)
    expect(mail.text).toBe('012345')
  })

  const lifetimes: readonly (readonly [number, string])[] = [
    [30, '1'],
    [60, '1'],
    [90, '1'],
    [300, '5'],
    [599, '9'],
  ]
  test.each(lifetimes)('says whole minutes of %p s', (lifetimeSeconds, minutes) => {
    const brand = brandWith({}, { en: { text: '{{otp}} {{minutes}}' } })
    expect(otpMail(brand, { ...code, lifetimeSeconds }, 'en').text).toBe(`012345 ${minutes}`)
  })

  const choices: readonly (readonly [lang: string | undefined, brandLang: string, subject: string])[] = [
    ['hi-IN', 'en', 'hi-IN subject'],
    ['hi', 'en', 'आपका Acme सत्यापन कोड'],
    ['sv', 'fa', 'fa subject'],
    [undefined, 'fa', 'fa subject'],
    [undefined, 'fr', 'Votre code de vérification Acme'],
    ['sv', 'sv', 'Your Acme verification code'],
  ]
  test.each(choices)(
    'of a request for %p and a brand in %p has the subject %p',
    (lang, brandLang, subject) => {
      const brand = brandWith({ lang: brandLang }, { 'hi-IN': {}, fa: {} })
      expect(otpMail(brand, code, lang).subject).toBe(subject)
    },
  )

  test('stays right after requests with many other languages', () => {
    const brand = brandWith({ lang: 'fa' }, { fa: {} })
    for (let index = 0; index < 250; index++) otpMail(brand, code, `en-x-${index}`)
    expect(otpMail(brand, code, undefined).subject).toBe('fa subject')
    expect(otpMail(brand, code, 'en-x-7').subject).toBe('Your Acme verification code')
  })
})

describe('the look of a mail', () => {
  const looks: readonly (readonly [string, BrandChange, string])[] = [
    ['no logo', {}, '<bdi>Acme</bdi></h1>'],
    [
      'a logo',
      { logoUrl: 'https://a.example/l.png?a=1&b' },
      'src="https://a.example/l.png?a=1&amp;b" alt="Acme" height="40"',
    ],
    ['a name like HTML', { logoUrl: 'https://a.example', displayName: nasty }, `alt="${escaped}"`],
    [
      'a name like a placeholder',
      { logoUrl: 'https://a.example', displayName: '{{otp}}' },
      'alt="&#123;&#123;otp}}"',
    ],
    [
      'a URL like a placeholder',
      { logoUrl: 'https://a.example/{{otp}}' },
      'src="https://a.example/&#123;&#123;otp}}"',
    ],
    ['a dark color', { color: '#0b57d0' }, 'background:#0b57d0;color:#ffffff'],
    ['a light color', { color: '#ffd400' }, 'background:#ffd400;color:#000000'],
  ]
  test.each(looks)('of a brand with %s', (_, look, expected) => {
    const brand = brandWith(look)
    for (const lang of ['en', 'fa'])
      expect(otpMail({ ...brand, lang }, code, undefined).html).toContain(expected)
  })

  test('is the same for mails of /notify', () => {
    const look = brandWith({ logoUrl: 'https://a.example/l.png', color: '#0b57d0' })
    const { html } = renderMail('Hi', 'Hello', {}, { look, lang: 'he' })
    expect(html).toContain('<html lang="he" dir="rtl">')
    expect(html).toContain('src="https://a.example/l.png" alt="Acme"')
    expect(html).toContain('border-top:6px solid #0b57d0')
    expect(html).toContain('>Hi</h1>')
  })

  test('has text on any color with a contrast of at least 4.5', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 0xffffff }), (rgb) => {
        const color = `#${rgb.toString(16).padStart(6, '0')}`
        expect(contrast(color, textOn(color))).toBeGreaterThanOrEqual(4.5)
      }),
    )
  })

  function contrast(a: string, b: string): number {
    const luminance = (color: string) =>
      [0.2126, 0.7152, 0.0722].reduce((sum, weight, index) => {
        const value = Number(`0x${color.slice(1 + 2 * index, 3 + 2 * index)}`) / 255
        return sum + weight * (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
      }, 0.05)
    const [darker = 0, lighter = 0] = [luminance(a), luminance(b)].sort()
    return lighter / darker
  }

  const directions: readonly (readonly [string, 'ltr' | 'rtl'])[] = [
    ['en', 'ltr'],
    ['ar', 'rtl'],
    ['ar-EG', 'rtl'],
    ['ur', 'rtl'],
    ['he', 'rtl'],
    ['fa-AF', 'rtl'],
    ['ps', 'rtl'],
    ['sd', 'rtl'],
    ['ug', 'rtl'],
    ['yi', 'rtl'],
    ['dv', 'rtl'],
    ['ckb', 'rtl'],
    ['ks-Deva', 'ltr'],
    ['az', 'ltr'],
    ['az-Arab', 'rtl'],
    ['pa', 'ltr'],
    ['pa-PK', 'rtl'],
    ['ar-Latn', 'ltr'],
    ['und', 'ltr'],
    ['qaa', 'ltr'],
  ]
  test.each(directions)('of a text in %p is %p', (tag, direction) => {
    expect(directionOf(tag)).toBe(direction)
  })
})

describe('both parts of the mail of a code', () => {
  const words = (text: string) => text.split(/\s+/).filter((word) => word !== '')
  const own = { text: 'Hi from {{businessName}}!\n\n{{otp}}\n\nGood for {{minutes}} minutes,\nonce.' }
  const brands = [
    brandWith(),
    brandWith({}, { en: own }),
    brandWith({ logoUrl: 'https://a.example/l.png' }, { en: own }),
  ]
  test.each(otpLanguages.map(({ tag }) => tag))('have the same words in %p', (tag) => {
    for (const brand of brands) {
      const { html, text } = otpMail(brand, code, tag)
      const shown = words(textOf(html, 10_000)).join(' ')
      const heading = brand.logoUrl === null ? 'ACME ' : ''
      expect(shown).toEndWith(heading + words(text).join(' '))
    }
  })
})

describe('the link in the mail of a code', () => {
  const to = "o'neil+a&b@example.com"
  const url = 'https://acme.example/code?from=mail&x=1'
  const fragment = 'code=012345&email=o%27neil%2Ba%26b%40example.com'
  const mailWith = (text?: Partial<BrandText>, linkUrl: string | null = url) =>
    otpMail(brandWith({ linkUrl }, text && { en: text }), { ...code, to }, 'en')

  test('has code and e-mail address in the fragment, and shows where it leads', () => {
    const { html, text } = mailWith()
    expect(text).toContain(`\n\n${url}#${fragment}\n\n`)
    const [, shown] = html.match(/<a href="([^"]*)" rel="noreferrer">([^<]*)<\/a>/)?.slice(0) ?? []
    expect(shown).toBe(escapeHtml(`${url}#${fragment}`))
    expect(html).toContain('>acme.example/code?from=mail&amp;x=1</a>')
    expect(new URL(`${url}#${fragment}`).search).not.toContain('012345')
  })

  test.each([
    ['at its end', '{{otp}}\n', `012345\n\n${url}#${fragment}\n`],
    ['in its place', '{{link}} or {{otp}}', `${url}#${fragment} or 012345`],
  ])('is in a text of the brand, %s', (_, own, expected) => {
    const { html, text } = mailWith({ text: own })
    expect(text).toBe(expected)
    expect(html).toContain(escapeHtml(fragment))
  })

  test('is in HTML of the brand', () => {
    const { html } = mailWith({ html: '<p>{{otp}} <a href="{{link}}">Go</a></p>' })
    expect(html).toBe(`<p>012345 <a href="${escapeHtml(`${url}#${fragment}`)}">Go</a></p>`)
    const own = { text: 'Your code: {{otp}}', html: '<p>{{otp}} <a href="{{link}}">Go</a></p>' }
    const unlinked = otpMail(brandWith({ linkUrl: url }, { en: own }), code, 'en').html
    expect(unlinked).toContain('Your code: <b dir="ltr">012345</b>')
    expect(unlinked).not.toContain('Go</a>')
  })

  test('is absent without a page of the brand, and of a code that the page cannot verify', () => {
    const own = { text: '{{otp}} {{link}}' }
    for (const mail of [mailWith(undefined, null), otpMail(brandWith({ linkUrl: url }), code, 'en')])
      expect(mail.html + mail.text).not.toContain('#code=')
    expect(mailWith(own, null).text).toBe('012345 ')
  })
})

describe('a template mail (design D11)', () => {
  test('has the subject as heading, escaped', () => {
    const { html, text } = renderMail(nasty, 'Hello', {})
    expect(html).toContain(`>${escaped}</h1>`)
    expect(html).not.toContain('<script')
    expect(text).toContain(nasty)
  })

  test('treats the template as text, not HTML', () => {
    const { html } = renderMail('Hi', `Hello <b>you</b> ${nasty}`, {})
    expect(html).toContain('&lt;b&gt;you&lt;/b&gt;')
    expect(html).not.toContain('<script')
  })

  const replaced: readonly (readonly [string, Readonly<Record<string, unknown>>, string])[] = [
    ['Hello {{name}}!', { name: 'Ann' }, 'Hello Ann!'],
    ['{{a}}{{b}}{{a}}', { a: '1', b: '2' }, '121'],
    ['{{ name }}', { name: 'Ann' }, 'Ann'],
    ['{{n}} {{yes}} {{list}}', { n: 0, yes: false, list: [1, 'a'] }, '0 false [1,"a"]'],
    ['{{empty}}.', { empty: '' }, '.'],
    ['{{a}}', { a: '{{b}}', b: 'second pass' }, '{{b}}'],
    ['{{a}}', { a: "$& $1 $` $'" }, "$& $1 $` $'"],
    ['{{a}}{{b}}', { a: '{', b: '{c}}', c: 'joined' }, '{{c}}'],
    ['{name} {{}} }}{{', { name: 'Ann' }, '{name} {{}} }}{{'],
    ['{{größe}}', { größe: 'XL' }, 'XL'],
  ]
  test.each(replaced)('fills %p in one pass', (template, data, expected) => {
    const { html, text } = renderMail('Hi', template, data)
    expect(html).toContain(`>${escapeHtml(expected)}</p>`)
    expect(text).toContain(expected)
  })

  test('escapes values in the HTML, and leaves them unchanged in the text part', () => {
    const { html, text } = renderMail('Hi', 'Hello {{name}}', { name: nasty })
    expect(html).toContain(`Hello ${escaped}`)
    expect(html).not.toContain('<script')
    expect(text).toContain(`Hello ${nasty}`)
  })

  const missing: readonly (readonly [string, Readonly<Record<string, unknown>>])[] = [
    ['not given', {}],
    ['null', { name: null }],
    ['of another case', { Name: 'Ann' }],
    ['inherited', Object.create({ name: 'Ann' })],
  ]
  test.each(missing)('reports a placeholder whose value is %s as missing', (_, data) => {
    expect(failureOf(() => renderMail('Hi', 'Hello {{name}}', data))).toEqual({
      kind: 'missing_variable',
      message: 'Missing required variable: name. `data` needs a value for {{name}}.',
    })
  })

  test.each(['constructor', 'toString', '__proto__'])(
    "does not read {{%s}} from the object's prototype",
    (name) => {
      expect(failureOf(() => renderMail('Hi', `{{${name}}}`, {}))).toMatchObject({ kind: 'missing_variable' })
    },
  )

  test('has a table of the data that no placeholder used, escaped', () => {
    const data = { name: 'Ann', [nasty]: nasty, total: 12.5, gone: null, items: [{ id: 1 }] }
    const { html, text } = renderMail('Hi', 'Hello {{name}}', data)
    const cells = [...html.matchAll(/<t[hd][^>]*>([^<]*)<\/t[hd]>/g)].map(([, cell]) => cell)
    expect(cells).toEqual([escaped, escaped, 'total', '12.5', 'items', '[{&quot;id&quot;:1}]'])
    expect(text).toContain('total: 12.5')
  })

  test('has no table without such data', () => {
    expect(renderMail('Hi', 'Hello {{name}}', { name: 'Ann' }).html).not.toContain('<th')
  })

  test('has a paragraph for each block of lines, and keeps line breaks', () => {
    const { html } = renderMail('Hi', 'one\ntwo\n\nthree\r\nfour', {})
    expect([...html.matchAll(/<p [^>]*>(.*?)<\/p>/gs)].map(([, content]) => content)).toEqual([
      'one<br>two',
      'three<br>four',
    ])
  })
})

describe('the size of a template mail', () => {
  const tooLarge = { kind: 'validation_error', message: 'The rendered e-mail must have at most 256 KiB.' }
  const rows = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`a${index}`, index]))
  const sizes: readonly (readonly [
    string,
    string,
    Readonly<Record<string, unknown>>,
    typeof tooLarge | 'none',
  ])[] = [
    ['one value in many places', '{{a}}'.repeat(1900), { a: '<'.repeat(100_000) }, tooLarge],
    ['a nested value in many places', '{{a}}'.repeat(1900), { a: [['<'.repeat(100_000)]] }, tooLarge],
    ['a value of 100,000', '{{a}}', { a: 'a'.repeat(100_000) }, 'none'],
    ['a value that is escaped', '{{a}}', { a: '<'.repeat(60_000) }, tooLarge],
    ['a value of many bytes', '{{a}}', { a: '\u20ac'.repeat(50_000) }, tooLarge],
    ['800 rows', 'Hello', rows(800), 'none'],
    ['30,000 rows', 'Hello', rows(30_000), tooLarge],
    ['3,333 paragraphs', 'a\n\n'.repeat(3333), {}, tooLarge],
    ['1,000 paragraphs', 'a\n\n'.repeat(1000), {}, 'none'],
  ]
  test.each(sizes)('is at most 256 KiB with %s (D30)', (_, template, data, outcome) => {
    expect(failureOf(() => renderMail('Subject', template, data))).toEqual(outcome as never)
  })

  test('is at most 256 KiB, or the mail is rejected, for any text and data', () => {
    const long = fc.tuple(fc.constantFrom('a', '<', '\u20ac', '\n\n', '{{a}}'), fc.nat(30_000))
    const value = fc.oneof(
      fc.jsonValue(),
      long.map(([unit, count]) => unit.repeat(count)),
    )
    const template = long.map(([unit, count]) => `Hello ${unit.repeat(count / 10)}`)
    fc.assert(
      fc.property(template, value, fc.array(value), (text, a, others) => {
        const failure = failureOf(() => {
          const mail = renderMail('Subject', text, { a, ...others })
          expect(Buffer.byteLength(mail.html) + Buffer.byteLength(mail.text)).toBeLessThanOrEqual(256 * 1024)
        })
        return typeof failure === 'string' || ['validation_error', 'missing_variable'].includes(failure.kind)
      }),
    )
  })

  test('is counted in bytes of UTF-8 for both parts together', () => {
    const sizeOf = (length: number) => {
      const { html, text } = renderMail('Subject', '{{a}}', { a: 'a'.repeat(length) })
      return Buffer.byteLength(html) + Buffer.byteLength(text)
    }
    const most = 10_000 + (256 * 1024 - sizeOf(10_000)) / 2
    expect(sizeOf(Math.floor(most))).toBeGreaterThan(256 * 1024 - 2)
    expect(failureOf(() => sizeOf(Math.floor(most) + 1))).toEqual(tooLarge as never)
  })

  test.each([
    [100, 'none'],
    [101, { kind: 'validation_error', message: '`data` must be nested at most 100 levels deep.' }],
    [100_000, { kind: 'validation_error', message: '`data` must be nested at most 100 levels deep.' }],
  ])('allows data nested 100 deep (%p)', (depth, outcome) => {
    const a = JSON.parse(`${'['.repeat(depth)}${']'.repeat(depth)}`)
    for (const template of ['{{a}}', 'no placeholder']) {
      expect(failureOf(() => renderMail('Subject', template, { a }))).toEqual(outcome as never)
    }
  })
})
