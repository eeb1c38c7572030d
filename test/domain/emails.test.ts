import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { Failure } from '../../src/domain/failures.ts'
import { escapeHtml, otpMail, renderMail } from '../../src/domain/messages/emails.ts'

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

describe('the mail of a code', () => {
  const mail = otpMail({ code: '012345', businessName: nasty, lifetimeSeconds: 300 })

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
