import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { codeOf, errorAnswer } from '../../src/adapters/http/errors.ts'
import { shippedFiles } from '../../src/adapters/sms/file/shipped/index.ts'
import { providerNames } from '../../src/adapters/sms/index.ts'
import { segmentsOf } from '../../src/adapters/sms/segments.ts'
import { codeSettings, messageSettings } from '../../src/config/server-settings.ts'
import { Failure, type FailureKind, failureMessages } from '../../src/domain/ground/failures.ts'
import { auditWords } from '../../src/domain/operator/audit-words.ts'
import { limitNames } from '../../src/domain/request/limit-names.ts'
import { otpLanguages } from '../../src/domain/texts/otp-texts.ts'
import { renderOtp } from '../../src/domain/texts/templates.ts'
import { pageAt, pages, root } from './pages.ts'

/** The rows of every table on a page, each with its cells. */
function rowsOf(path: string): readonly (readonly string[])[] {
  return [...pageAt(path).text.matchAll(/^\| (.+) \|$/gm)]
    .map(([, row = '']) => row.split(' | ').map((cell) => cell.trim()))
    .filter(([first = '']) => !/^-+$/.test(first))
}

describe('docs/errors.md', () => {
  const documented = rowsOf('docs/errors.md')
    .filter(([status = '']) => /^\d{3}$/.test(status))
    .map(([status, error, message]) => `${status} ${error} ${message}`)

  test.each(Object.keys(failureMessages) as FailureKind[])('has %s', (kind) => {
    const failure = new Failure(kind)
    const [firstSentence = ''] = failureMessages[kind].split(/(?<=\.) /)
    const { status } = errorAnswer(failure, '')
    expect(documented).toContain(`${status} \`${codeOf(failure)}\` ${firstSentence}`)
  })

  test('has no other code', () => {
    expect(documented).toHaveLength(Object.keys(failureMessages).length)
  })
})

describe('docs/limits.md', () => {
  const rows = rowsOf('docs/limits.md')

  test('has every limit and no other', () => {
    const named = rows.map(([limit = '']) => /^`([a-z]+(?:-[a-z]+)*)`$/.exec(limit)?.[1])
    const fields = [
      'phone',
      'loginId',
      'to',
      'message',
      'subject',
      'html',
      'template',
      'data',
      'website',
      'useCase',
    ]
    const limits = named.filter((name) => name !== undefined && !fields.includes(name))
    expect([...new Set(limits)].sort()).toEqual([...limitNames].sort())
  })

  const { PHONE_DEFAULT_REGION: _, ...counted } = codeSettings
  const { PROVIDER_TIMEOUT_MS } = messageSettings
  test.each(
    Object.values({ ...counted, PROVIDER_TIMEOUT_MS }).map((setting) => [setting.name, setting] as const),
  )('has the default of %s', (name, setting) => {
    const row = rows.find((cells) => cells.includes(`\`${name}\``)) ?? []
    const value = row.find((cell) => /^\d/.test(cell)) ?? ''
    const numbers = value.replaceAll(',', '').match(/\d+/g) ?? []
    expect(numbers).toContain(String(setting.default))
  })
})

test('docs/languages.md has the name and the alphabet of every language', () => {
  const lists = pageAt('docs/languages.md').text.matchAll(/^- (GSM-7|UCS-2), (.+?)\.$/gms)
  const listed = [...lists].flatMap(([, encoding = '', list = '']) =>
    [...list.matchAll(/(\w+) `(\w+)`/g)].map(([, name, tag]) => [tag, name, encoding]),
  )
  const english = new Intl.DisplayNames('en', { type: 'language' })
  const expected = otpLanguages.map(({ tag, LOGIN_OTP }) => {
    const about = { code: '493027', businessName: 'Acme', lifetimeSeconds: 300, loginId: undefined }
    const { text } = renderOtp(about, { lang: tag, text: LOGIN_OTP })
    return [tag, english.of(tag) ?? tag, segmentsOf(text).encoding]
  })
  expect(listed.toSorted()).toEqual(expected.toSorted())
})

test('docs/events.md and docs/commands.md have every audit action and no other', () => {
  const { text } = pageAt('docs/events.md')
  const rows = text.slice(text.indexOf('\n## Audit log')).matchAll(/`([a-z-]+\.[a-z-]+)`/g)
  const ofCommands = [...pageAt('docs/commands.md').text.matchAll(/Audit: (.+)\.$/gm)].flatMap(
    ([, list = '']) => list.replaceAll('`', '').split(', '),
  )
  const listed = [...[...rows].map(([, action = '']) => action), ...new Set(ofCommands)]
  expect(listed.sort()).toEqual(Object.keys(auditWords).sort())
})

describe('the pages of providers', () => {
  const paths = pages.map(({ path }) => path).filter((path) => /^docs\/providers\/(?!README)/.test(path))

  test('are there for each provider that delivers messages, and are listed', () => {
    const developmentOnly = ['outbox', 'discard']
    const shipped = shippedFiles.map(({ provider }) => provider)
    const builtIn = providerNames.filter((name) => !developmentOnly.includes(name))
    const expected = [...builtIn, 'smtp', ...shipped, 'shipped', 'files']
    expect(paths.toSorted()).toEqual(expected.map((name) => `docs/providers/${name}.md`).toSorted())
    const targets = ['README', 'shipped'].flatMap((each) => pageAt(`docs/providers/${each}.md`).targets)
    expect(paths.filter((path) => !targets.includes(path.replace('docs/providers/', '')))).toEqual([])
  })
})

describe('docs/operations.md', () => {
  /** The names at the beginning of each entry of the list in a section. */
  function listedIn(section: string): readonly string[] {
    const [, body = ''] = pageAt('docs/operations.md').text.split(`\n## ${section}\n`)
    return [...(body.split('\n## ')[0] ?? '').matchAll(/^- `([^`]+)`/gm)].map(([, name = '']) => name)
  }

  test('says what to do about each alert', () => {
    const rules = readFileSync(join(root, 'deploy/prometheus/alerts.yml'), 'utf8')
    const alerts = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name = '']) => name)
    expect(alerts.length).toBeGreaterThan(20)
    expect(listedIn('Alerts').toSorted()).toEqual(alerts.toSorted())
  })
})
