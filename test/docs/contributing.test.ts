import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { getTableName, is, Table } from 'drizzle-orm'
import * as postgresSchema from '../../src/adapters/postgres/schema.ts'
import * as sqliteSchema from '../../src/adapters/sqlite/schema.ts'
import { pageAt, readPage, root } from './pages.ts'

// CONTRIBUTING.md lists the files that an addition changes. Earlier additions show whether the lists are complete.

/** A section of CONTRIBUTING.md, and an earlier addition of its kind. */
const additions: readonly (readonly [section: string, example: RegExp])[] = [
  ['Add an SMS provider', /\bkannel\b/],
  ['Add an SMS provider', /\bmsg91\b/],
  ['Add an SMS provider', /\bsns\b/],
  ['Add an SMS provider', /\btwilio\b/],
  ['Add an SMS provider', /\bvonage\b/],
  ['Add a limit', /'phone-minute'/],
  ['Add a limit', /'recipient-hour'/],
  ['Add a template', /\bORDER_DELIVERED\b/],
  ['Add a command', /\bhealthCommands\b/],
  ['Add a command', /\bmoveCommands\b/],
  ['Add a step on codes and limits', /\babandonSend\b/],
  ['Add a step on codes and limits', /\breschedule\b/],
  ['Add a saved record', /\bconsoleLinks\b|\bconsole_links\b/],
]

/** Its examples name some templates only. */
const examples = ['src/adapters/http/openapi.ts']

/** Code of the product without comments, by its path. */
const sources = new Map(
  [...new Bun.Glob('{src,client}/**/*.{ts,tsx}').scanSync({ cwd: root })].map((path) => [
    path,
    readFileSync(join(root, path), 'utf8').replace(/\/\*[\s\S]*?\*\/|(?<![:'"`\\])\/\/.*$/gm, ''),
  ]),
)

/** The files that a section names. `NAME` means any name. */
function namedIn(section: string): readonly string[] {
  const { text } = pageAt('CONTRIBUTING.md')
  const [, body = ''] = text.split(`\n## ${section}\n`)
  const { spans } = readPage('CONTRIBUTING.md', body.split('\n## ')[0] ?? '')
  return spans.filter((span) => /^(?:src|client)\/.*\.tsx?$/.test(span))
}

test.each(additions)('"%s" names every file that has %p', (section, example) => {
  const named = namedIn(section)
  const isNamed = (path: string) =>
    named.some((each) => each === path || each.replace(/NAME\.ts$/, '') === path.replace(/[\w-]+\.ts$/, ''))
  const found = [...sources].filter(([, code]) => example.test(code)).map(([path]) => path)
  expect(found.length).toBeGreaterThan(1)
  expect(found.filter((path) => !examples.includes(path) && !isNamed(path))).toEqual([])
})

test('files that CONTRIBUTING.md names exist', () => {
  const named = [...new Set(additions.map(([section]) => section))].flatMap(namedIn)
  expect(named.filter((path) => !path.endsWith('/NAME.ts') && !existsSync(join(root, path)))).toEqual([])
})

test('docs/architecture.md names every module and every table', () => {
  const { spans } = pageAt('docs/architecture.md')
  const modules = [...new Bun.Glob('*').scanSync({ cwd: join(root, 'src/adapters'), onlyFiles: false })]
  const isNamed = (each: string) => spans.includes(each) || spans.includes(`src/adapters/${each}`)
  expect(modules.filter((each) => !isNamed(each))).toEqual([])
  const tables = [...Object.values(sqliteSchema), ...Object.values(postgresSchema)].filter((each) =>
    is(each, Table),
  )
  expect(tables.map((table) => getTableName(table)).filter((name) => !spans.includes(name))).toEqual([])
})
