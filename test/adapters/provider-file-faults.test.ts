import { afterAll, describe, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { ProviderCatalog } from '../../src/adapters/sms/catalog.ts'
import { checkFile } from '../../src/adapters/sms/file/check.ts'
import { requestOf } from '../../src/adapters/sms/file/encode.ts'
import { fileProvider } from '../../src/adapters/sms/file/file-provider.ts'
import type { ProviderFile } from '../../src/adapters/sms/file/format.ts'
import { readConfig } from '../../src/config/config.ts'
import { takenNames } from '../../src/config/providers.ts'
import { Settings } from '../../src/config/settings.ts'
import { temporaryFolder } from '../support/folder.ts'

// What no provider file, no setting and no folder may do.

const settings = { PLIVO_AUTH_ID: 'MA1', PLIVO_AUTH_TOKEN: 't', PLIVO_FROM: '14155550100' }
const request = {
  method: 'POST',
  url: 'https://api.plivo.com/v1/Account/MA1/Message/',
  json: { src: '14155550100', dst: '447400123456', text: 'a' },
}
const message = { to: '447400123456', text: 'a' }
/** With the name of a shipped file. */
const plivo: ProviderFile = {
  provider: 'plivo',
  docs: 'https://www.plivo.com/docs/',
  settings: { PLIVO_AUTH_ID: {}, PLIVO_AUTH_TOKEN: { secret: true }, PLIVO_FROM: {} },
  from: 'PLIVO_FROM',
  to: 'digits',
  send: {
    method: 'POST',
    url: 'https://api.plivo.com/v1/Account/{{PLIVO_AUTH_ID}}/Message/',
    basic: ['{{PLIVO_AUTH_ID}}', '{{PLIVO_AUTH_TOKEN}}'],
    json: { src: '{{from}}', dst: '{{to}}', text: '{{text}}', url: '{{reportUrl}}' },
  },
  accepted: { status: 202 },
  reports: { in: 'form', status: 'Status', delivered: ['delivered'], failed: ['failed'] },
  vectors: [
    { settings, message, request, answer: { status: 202 }, outcome: 'accepted' },
    { settings, message, request, answer: { status: 401 }, outcome: 'account' },
  ],
}
const faultsOf = (given: unknown): readonly string[] => {
  const checked = checkFile('plivo', typeof given === 'string' ? given : JSON.stringify(given), takenNames)
  return 'faults' in checked ? checked.faults : []
}
const sending = (part: object): ProviderFile => ({ ...plivo, send: { ...plivo.send, ...part } })

/** A copy in which the value of a path is another. */
function withValue(json: unknown, [key, ...rest]: readonly string[], value: unknown): unknown {
  if (key === undefined) return value
  const copy = Array.isArray(json) ? [...json] : { ...Object(json) }
  copy[key] = withValue(copy[key], rest, value)
  return copy
}

function pathsOf(json: unknown, at: readonly string[] = []): readonly (readonly string[])[] {
  const inside = typeof json === 'object' && json !== null ? Object.entries(json) : []
  return [at, ...inside.flatMap(([key, each]) => pathsOf(each, [...at, key]))]
}

describe('the check', () => {
  const odd: readonly unknown[] = [
    null,
    true,
    -1,
    0.5,
    '',
    'x',
    '{{',
    '{{to',
    [],
    [null],
    {},
    { toString: 1, valueOf: 1 },
  ]

  test('has a fault, and no exception, for a wrong value at any key', () => {
    const whole: ProviderFile = {
      ...plivo,
      template: { json: { a: '{{var.otp}}' } },
      errors: [{ status: ['4xx'], json: '$.a', equals: [1], outcome: 'recipient' }],
      accepted: { status: 202, json: '$.a', equals: ['b'], id: '$.c' },
    }
    for (const path of pathsOf(whole)) {
      for (const value of odd) {
        const faults = faultsOf(withValue(whole, path, value))
        const isWrong = value === null || Object.hasOwn(Object(value), 'valueOf')
        // The values of a body and of an example may be anything that the two agree on.
        if (isWrong && !/\.json|vectors/.test(path.join('.')))
          expect([path, value, faults]).not.toEqual([path, value, []])
      }
    }
  })

  test('of any JSON ends', () => {
    const json = fc.jsonValue({ maxDepth: 4 }).map((value) => JSON.parse(JSON.stringify(value)))
    const path = fc.constantFrom(...pathsOf(plivo))
    fc.assert(
      fc.property(path, path, json, json, (one, two, first, second) => {
        faultsOf(withValue(withValue(plivo, one, first), two, second))
      }),
      { numRuns: 500 },
    )
    expect(faultsOf(`{"a":${'['.repeat(90_000)}${']'.repeat(90_000)}}`)).toEqual([
      'the file is nested deeper than 32 levels',
    ])
    expect(faultsOf('['.repeat(90_000))).toHaveLength(1)
  })

  test.each<[fault: string, text: string]>([
    ['line 3: the key "a" is there twice', '{\n"b": [{"a": 1}, {"a": ":{}"}], "a":\n{}, "a": 2}'],
    ['the file is not JSON: line 3: } is not possible here', '{\n"a": 1,\n}'],
    ['the file is not JSON: line 2: "b" is not possible here', '{"a": 1\n"b": 2}'],
    ['the file is not JSON: line 1: // is not possible here', '// x\n{}'],
    ['the file is not JSON: line 2: } is not possible here', '{}\n}'],
    ['the file must be of the type object', 'null'],
  ])('has the line of %s', (fault, text) => expect(faultsOf(text)).toEqual([fault]))

  test('reads JSON as JSON.parse does', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 5 }), fc.constantFrom(undefined, 1), (text, indent) => {
        const json = JSON.stringify(JSON.parse(text), null, indent)
        expect(faultsOf(json).join()).not.toMatch(/not JSON|twice/)
      }),
    )
  })

  test('has each fault in one line, without a command to the terminal', () => {
    const faults = faultsOf({ ...plivo, 'a\u001b[31m\n\u009b\u202e': 1 })
    expect(faults).toEqual(['a?[31m??? is no key of the format'])
    for (const text of ['n\u001b', '"\u001b', '"\u0001"', '\u009b'])
      expect(faultsOf(text).join()).toMatch(/^[ -~]+$/)
  })

  test('makes the settings of a login secrets', () => {
    const settings = { ...plivo.settings, PLIVO_AUTH_TOKEN: {} }
    expect(checkFile('plivo', JSON.stringify({ ...plivo, settings }), takenNames)).toEqual({ file: plivo })
    const { basic: _, ...bearer } = { ...plivo.send, bearer: '{{PLIVO_AUTH_TOKEN}}' }
    expect(checkFile('plivo', JSON.stringify({ ...plivo, settings, send: bearer }), takenNames)).toEqual({
      file: { ...plivo, send: bearer },
    })
  })

  const { send, vectors } = plivo
  test.each<[fault: string, file: unknown]>([
    ['"{{to" has {{ without a name and }}', sending({ json: { ...Object(send.json), x: '{{to' } })],
    ['send.headers.Host is set by otpost itself', sending({ headers: { Host: 'a' } })],
    ['send.headers.Content-Length is set by otpost itself', sending({ headers: { 'Content-Length': 1 } })],
    ['send.headers.authorization is set by otpost itself', sending({ headers: { authorization: 'a' } })],
    ['send.headers: "a b" is no name of a header', sending({ headers: { 'a b': 'a' } })],
    ['send.headers.x-a is there twice', sending({ headers: { 'X-A': 'a', 'x-a': 'b' } })],
    ['send.headers.a must be printable ASCII', sending({ headers: { a: 'b\r\nc: d' } })],
    ...[
      'https://a.example/a/../b',
      'https://a.example/%2e/b',
      'https://a.example\\b',
      'https://a.example/ b',
      'https://a.example:b/',
    ].map((url): [string, unknown] => [
      'send.url must be a URL of visible ASCII without \\ and without the segments . and ..',
      sending({ url }),
    ]),
    [
      'settings.PLIVO_AUTH_TOKEN is a secret, so it has no default',
      { ...plivo, settings: { ...plivo.settings, PLIVO_AUTH_TOKEN: { secret: true, default: 'key' } } },
    ],
    [
      'errors[0].equals needs errors[0].json, the path of the value',
      { ...plivo, errors: [{ equals: [1], outcome: 'recipient' }] },
    ],
    [
      'accepted.id is missing: without {{reportUrl}}, reports name a message by it',
      { ...sending({ json: { a: '{{to}}{{text}}{{from}}' } }), accepted: { status: 202 } },
    ],
    [
      "reports.status must be the name of a field, without ', or a path such as $.status",
      { ...plivo, reports: { ...plivo.reports, status: '$status' } },
    ],
    [
      'vectors.0.answer must be a status with json or body, or "timeout"',
      { ...plivo, vectors: [{ ...vectors[0], answer: { status: 202, text: '' } }, ...vectors.slice(1)] },
    ],
  ])('rejects: %s', (fault, given) => expect(faultsOf(given)).toContain(fault))

  test('compares a form with any content type', () => {
    const { json, ...rest } = send
    const form: ProviderFile = {
      ...plivo,
      send: {
        ...rest,
        headers: { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' },
        form: Object(json),
      },
      vectors: vectors.map(({ request: { json: sent, ...request }, ...vector }) => ({
        ...vector,
        request: { ...request, form: Object(sent) },
      })),
    }
    expect(faultsOf(form)).toEqual([])
  })

  test('keeps a key __proto__ of a body as a field', () => {
    const odd = JSON.parse('{"__proto__": "{{text}}", "a": {"__proto__": {"b": "{{to}}"}}}')
    const values = new Map([
      ['text', 't'],
      ['to', '1'],
    ])
    const body = '{"__proto__":"t","a":{"__proto__":{"b":"1"}}}'
    expect(requestOf(sending({ json: odd }), false, values).body).toBe(body)
    const { json: _, ...rest } = send
    const form = { ...plivo, send: { ...rest, form: JSON.parse('{"__proto__": "{{text}}"}') } }
    expect(requestOf(form, false, values).body).toBe('__proto__=t')
  })
})

describe('a path', () => {
  test.each([
    ['/%2{{text}}/b', 'e', '/%2E/b'],
    ['/%2e{{text}}/b', '.', '/%2E%2E/b'],
    ['/{{text}}{{to}}/b', '.', '/%2E%2E/b'],
    ['/{{text}}/b', '.\\..', '/.%5C../b'],
    ['/{{text}}/b', '{{to}}', '/%7B%7Bto%7D%7D/b'],
    ['/{{text}}/b', '%2e', '/%252e/b'],
  ])('%s with %s is %s', (path, text, made) => {
    const values = new Map([
      ['text', text],
      ['to', '.'],
    ])
    const { url } = requestOf(sending({ url: `https://a.example${path}`, json: undefined }), false, values)
    expect(url.replace(/%2e/gi, '%2E')).toBe(`https://a.example${made}`)
  })
})

describe('a setting of the URL', () => {
  const problems = (url: string, value: string) => {
    const given = new Settings({ PLIVO_AUTH_ID: value, PLIVO_AUTH_TOKEN: 't', PLIVO_FROM: 'F' })
    fileProvider(sending({ url })).configure(given, 'plain')
    return given.problems
  }

  test.each([
    ['https://{{PLIVO_AUTH_ID}}.example/', 'a', 0],
    ['https://{{PLIVO_AUTH_ID}}.example/', 'a@b', 1],
    ['https://{{PLIVO_AUTH_ID}}.example/', 'evil.com/', 1],
    ['https://{{PLIVO_AUTH_ID}}.example/', 'evil.com#', 1],
    ['https://{{PLIVO_AUTH_ID}}.example/', '.', 1],
    ['https://a.example:{{PLIVO_AUTH_ID}}/', '8080', 0],
    ['https://a.example:{{PLIVO_AUTH_ID}}/', 'a', 1],
    ['{{PLIVO_AUTH_ID}}/send', 'https://a.example/base/', 0],
    ['{{PLIVO_AUTH_ID}}/send', 'http://127.0.0.1:8080', 0],
    ['{{PLIVO_AUTH_ID}}/send', 'http://a.example', 1],
    ['{{PLIVO_AUTH_ID}}/send', 'https://u:p@a.example', 1],
    ['{{PLIVO_AUTH_ID}}/send', 'https://a.example/?to=', 1],
    ['{{PLIVO_AUTH_ID}}/send', 'https://a.example#', 1],
    ['{{PLIVO_AUTH_ID}}/send', 'https://a.example\\b', 1],
    ['{{PLIVO_AUTH_ID}}/send', 'a.example', 1],
    ['https://a.example/{{PLIVO_AUTH_ID}}', '../..', 0],
  ])('%s with %s has %i problems', (url, value, count) => {
    expect(problems(url, value)).toHaveLength(count)
  })
})

describe('the folder', () => {
  const folder = temporaryFolder()
  afterAll(() => folder.remove())

  test('can have what is no file of a provider, which is a fault only where it is used', () => {
    const at = (name: string) => join(folder.path, name)
    writeFileSync(at('real.txt'), JSON.stringify({ ...plivo, provider: 'linked' }))
    symlinkSync(at('real.txt'), at('linked.json'))
    writeFileSync(at('marked.json'), `\ufeff${JSON.stringify({ ...plivo, provider: 'marked' })}`)
    writeFileSync(at('latin.json'), Buffer.from('{"name": "ü"}', 'latin1'))
    symlinkSync(at('nowhere'), at('gone.json'))
    symlinkSync(at('loop.json'), at('loop.json'))
    mkdirSync(at('folder.json'))
    spawnSync('mkfifo', [at('pipe.json')])
    writeFileSync(at('huge.json'), ' '.repeat(262_145))
    writeFileSync(at('.json'), '{}')
    writeFileSync(at('twilio.json'), JSON.stringify({ ...plivo, provider: 'twilio' }))
    writeFileSync(at('plivo.json'), JSON.stringify({ ...plivo, name: 'Mine' }))
    const catalog = new ProviderCatalog(folder.path, takenNames)
    const own = catalog.list().filter(({ source }) => source === 'file')
    expect(own.map(({ name, faults = [] }) => [name, faults[0]]).sort()).toEqual([
      ['folder', 'it is no file'],
      ['gone', 'it cannot be read (ENOENT)'],
      ['huge', 'the file has more than 262144 bytes'],
      ['latin', 'it is not UTF-8'],
      ['linked', undefined],
      ['loop', 'it cannot be read (ELOOP)'],
      ['marked', undefined],
      ['pipe', 'it is no file'],
      ['plivo', undefined],
      ['twilio', 'provider: twilio is a built-in provider'],
    ])
    expect(own.find(({ name }) => name === 'plivo')?.file?.name).toBe('Mine')
    expect(catalog.named('linked').faults).toEqual([])
    expect(catalog.named('gone').faults).toEqual([
      `names gone, and ${at('gone.json')} is wrong: it cannot be read (ENOENT)`,
    ])
    // A file that changes while the server runs stays what it was.
    writeFileSync(at('plivo.json'), '{')
    expect(catalog.named('plivo').faults).toEqual([])
  })

  test('stops a start only where a route names a wrong file, with all its faults', () => {
    writeFileSync(
      join(folder.path, 'broken.json'),
      JSON.stringify({ ...plivo, provider: 'broken', to: 'x', y: 1 }),
    )
    const start = (SMS_PLAIN: string) => () => readConfig({ PROVIDER_FILES: folder.path, SMS_PLAIN })
    expect(start('outbox')).not.toThrow()
    const fault = (words: string) =>
      `SMS_PLAIN names broken, and ${folder.path}/broken.json is wrong: ${words}`
    const faults = [fault('y is no key of the format'), fault('to must be one of plus, digits')]
    expect(start('broken')).toThrow(faults.join('\n'))
  })
})
