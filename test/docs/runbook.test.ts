import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { providerNames } from '../../src/adapters/sms/index.ts'
import { pageAt, pages, root } from './pages.ts'

function headingsOf(path: string, level: string): readonly string[] {
  return [...pageAt(path).text.matchAll(new RegExp(`^${level} (.+)$`, 'gm'))].map(([, title = '']) => title)
}

describe('the pages of providers', () => {
  const paths = pages.map(({ path }) => path).filter((path) => /^docs\/providers\/(?!README)/.test(path))

  test('are there for each provider that delivers messages, and are listed', () => {
    const developmentOnly = ['outbox', 'discard']
    const expected = [...providerNames.filter((name) => !developmentOnly.includes(name)), 'smtp']
    expect(paths.toSorted()).toEqual(expected.map((name) => `docs/providers/${name}.md`).toSorted())
    const { targets } = pageAt('docs/providers/README.md')
    expect(paths.filter((path) => !targets.includes(path.replace('docs/providers/', '')))).toEqual([])
  })

  test.each(paths)('%s has the same headings as the others, and says what was never tried', (path) => {
    expect(headingsOf(path, '##')).toEqual([
      'Set up at the provider',
      'Settings',
      'Registered templates (DLT)',
      'Delivery reports',
      'Errors',
      'Try it',
      'Troubleshooting',
    ])
    const [introduction = ''] = pageAt(path).text.split('\n## ')
    expect(introduction).toContain('\n\nFor ')
    expect(introduction).toContain('**Never tried:**')
  })
})

describe('docs/operations.md', () => {
  /** The names in the first column of the table in a section. */
  function listedIn(section: string): readonly string[] {
    const [, body = ''] = pageAt('docs/operations.md').text.split(`\n## ${section}\n`)
    return [...(body.split('\n## ')[0] ?? '').matchAll(/^\| `([^`]+)`/gm)].map(([, name = '']) => name)
  }

  test('says what to do about each alert', () => {
    const rules = readFileSync(join(root, 'deploy/prometheus/alerts.yml'), 'utf8')
    const alerts = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name = '']) => name)
    expect(alerts.length).toBeGreaterThan(20)
    expect(listedIn('Alerts').toSorted()).toEqual(alerts.toSorted())
  })

  test('says what to do about each finding of otpost doctor', () => {
    const files = [
      ...new Bun.Glob('src/commands/doctor/*.ts').scanSync({ cwd: root }),
      'src/config/warnings.ts',
    ]
    const sources = files.map((file) => readFileSync(join(root, file), 'utf8')).join('\n')
    // A subject is a literal, or one that these lists name.
    const literal = [
      ...sources.matchAll(
        /\b(?:ok|warn|fail)\(\s*'([^']+)'|\b(?:what|setting): '([^']+)'|\bwhat = '([^']+)'|^ {4}\['(\w+)', /gm,
      ),
    ].map(([, first, second, third, fourth]) => first ?? second ?? third ?? fourth ?? '')
    const secrets = ['METRICS_TOKEN', 'OUTBOX_TOKEN', 'SMS_WEBHOOK_SECRET', 'ALERT_WEBHOOK_SECRET']
    const bySetting = [...secrets, 'SMS_PLAIN', 'SMS_TEMPLATE', 'SMTP_URL']
    const subjects = new Set([...literal, ...bySetting, 'SMS NAME'])
    expect(subjects.size).toBeGreaterThan(25)
    expect(listedIn('Findings of otpost doctor').toSorted()).toEqual([...subjects].toSorted())
  })
})
