import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { slugOf } from '../../release/site/pages.ts'
import { linksOf } from '../../src/adapters/console/overview/links.tsx'
import { docsAt } from '../../src/domain/ground/docs.ts'
import { isWeb, type Page, pageAt, pages, readPage, resolved, root } from './pages.ts'

/** Returns the problem of a broken link. */
function problemOf(page: Page, target: string): string | undefined {
  if (isWeb(target)) {
    const isAddress =
      /^(?:https?:\/\/[^\s/]+\.[^\s]+|http:\/\/(?:127\.0\.0\.1|localhost)[:/]\S*|mailto:\S+@\S+)$/
    return isAddress.test(target) && URL.canParse(target) ? undefined : 'is not a URL'
  }
  const { path, anchor } = resolved(page, target)
  if (path.startsWith('..')) return 'leaves the repository'
  const file = join(root, path)
  if (!existsSync(file)) return `does not exist: ${path}`
  if (anchor === undefined) return undefined
  if (!path.endsWith('.md')) return 'has an anchor, but is not a page'
  const known = path === page.path ? page : pageAt(path)
  return known.anchors.has(anchor) ? undefined : `has no such heading: ${path}`
}

/** The pages that links reach from the index. Links of the README do not count: they reach nearly every page. */
function reachable(): ReadonlySet<string> {
  const seen = new Set(['docs/README.md'])
  for (const path of seen) {
    const page = path === 'README.md' ? undefined : pages.find((each) => each.path === path)
    for (const target of page?.targets ?? []) {
      if (page && !isWeb(target)) seen.add(resolved(page, target).path)
    }
  }
  return seen
}

describe('the page reader', () => {
  test('finds headings, links, pictures, samples and code spans', () => {
    const page = readPage(
      'docs/a.md',
      [
        '# One `two` & three: "four"',
        '## Again',
        '## Again',
        'A [link](b.md#x "title"), a [reference][r], ![a picture](c.png) and `some code`.',
        '',
        '| a |',
        '| - |',
        '| [in a cell](d.md) `also` |',
        '',
        '```sh',
        'echo one',
        '```',
        '    echo indented',
        '',
        '<img src="e.png" alt="" />',
        '',
        '[r]: ../f.md',
      ].join('\n'),
    )
    expect([...page.anchors]).toEqual(['one-two--three-four', 'again', 'again-1'])
    expect(page.targets).toEqual(['b.md#x', '../f.md', 'c.png', 'd.md', 'e.png'])
    expect(page.spans).toEqual(['two', 'some code', 'also'])
    expect(page.samples.map(({ language, code }) => [language, code])).toEqual([
      ['sh', 'echo one\n'],
      ['', 'echo indented\n'],
    ])
    expect(page.samples[0]?.at).toBe('docs/a.md:11')
    expect(resolved(page, '../f.md#g')).toEqual({ path: 'f.md', anchor: 'g' })
    expect(slugOf("What doesn't change")).toBe('what-doesnt-change')
  })

  test('detects broken links', () => {
    const page = readPage('docs/README.md', '# Here\n')
    expect(problemOf(page, '#here')).toBeUndefined()
    expect(problemOf(page, '../README.md')).toBeUndefined()
    expect(problemOf(page, 'https://example.com/a')).toBeUndefined()
    expect(problemOf(page, '#there')).toBe('has no such heading: docs/README.md')
    expect(problemOf(page, '../README.md#no-such-heading')).toBe('has no such heading: README.md')
    expect(problemOf(page, 'gone.md')).toBe('does not exist: docs/gone.md')
    expect(problemOf(page, '../../elsewhere')).toBe('leaves the repository')
    expect(problemOf(page, 'https://')).toBe('is not a URL')
  })

  test('finds all pages', () => {
    expect(pages.map(({ path }) => path)).toContain('README.md')
    expect(pages.length).toBeGreaterThan(30)
  })
})

test.each(pages.filter(({ targets }) => targets.length > 0).map((page) => [page.path, page] as const))(
  'no link of %s is broken',
  (_, page) => {
    const problems = page.targets.map((target) => [target, problemOf(page, target)] as const)
    expect(problems.filter(([, problem]) => problem !== undefined)).toEqual([])
  },
)

test('the README of the npm package links to no file outside of the package', () => {
  const { targets } = pageAt('client/README.md')
  expect(targets.length).toBeGreaterThan(0)
  expect(targets.filter((target) => !target.startsWith('#') && !isWeb(target))).toEqual([])
})

test('the console links pages of the documentation in a build with their URL', () => {
  expect(linksOf([{ docs: 'guard' }])).toEqual([])
  Reflect.set(globalThis, 'DOCS_URL', 'https://docs.example.org')
  try {
    expect(docsAt('relays')).toBe('https://docs.example.org/relays')
    expect(linksOf([{ docs: 'guard' }])).toEqual([
      { title: 'Documentation', href: 'https://docs.example.org/guard.html' },
    ])
  } finally {
    Reflect.deleteProperty(globalThis, 'DOCS_URL')
  }
  expect(docsAt('relays')).toBe('docs/relays')
})

test('files that pages name exist', () => {
  const named =
    /^(?:\.\.?\/)*((?:src|test|docs|deploy|bench|client|release|examples|drizzle)\/[\w@./-]*\w\/?)$/
  const missing = pages.flatMap(({ path, spans }) =>
    spans
      .map((span) => named.exec(span)?.[1])
      .filter((file) => file !== undefined)
      .filter((file) => !/\bNAME\b/.test(file))
      .filter((file) => !existsSync(join(root, file)))
      .map((file) => `${path} names ${file}`),
  )
  expect(missing).toEqual([])
})

/**
 * The functions and test titles that a page such as asvs.md names after a link such as `[http/body.ts]`.
 * `file` is undefined if the link has no definition.
 */
function evidenceIn({ text }: Page): readonly { link: string; file: string | undefined; named: string }[] {
  const files = new Map(
    Array.from(text.matchAll(/^\[([^\]]+)\]: (\S+)$/gm), ([, link, file]) => [link, file]),
  )
  return Array.from(
    text.matchAll(/\[([\w./-]+\.tsx?)\](?!:)((?:,? (?:`[^`]+`|"[^"]+"))*)/g),
    ([, link = '', evidence = '']) =>
      Array.from(evidence.matchAll(/`([^`]+)`|"([^"]+)"/g), ([, name, title]) => name ?? title ?? '').map(
        (named) => ({ link, file: files.get(link), named }),
      ),
  ).flat()
}

test.each(
  pages
    .filter(({ path }) => /^docs\/engineering\/(?:asvs|nist)\.md$/.test(path))
    .map((page) => [page.path, page] as const),
)('functions and tests that %s names exist', (_, page) => {
  const evidence = evidenceIn(page)
  expect(evidence.length).toBeGreaterThan(20)
  const isThere = (file: string, named: string) =>
    readFileSync(join(root, resolved(page, file).path), 'utf8').includes(named)
  expect(evidence.filter(({ file, named }) => file === undefined || !isThere(file, named))).toEqual([])
})

describe('the index', () => {
  test('is linked from the README', () => {
    const { targets } = pageAt('README.md')
    expect(targets.some((target) => ['docs/README.md', 'docs/', 'docs'].includes(target))).toBe(true)
  })

  test('reaches every page', () => {
    const found = reachable()
    // A link to a folder shows its README.
    const isFound = ({ path }: Page) =>
      found.has(path) || found.has(path.replace(/\/README\.md$/, '')) || path.startsWith('test/')
    expect(pages.filter((page) => !isFound(page)).map(({ path }) => path)).toEqual([])
  })
})

test.each([...new Bun.Glob('docs/**/*.svg').scanSync({ cwd: root })])('files that %s names exist', (path) => {
  const drawing = readFileSync(join(root, path), 'utf8')
  const words = [...drawing.matchAll(/>([^<]+)</g)].flatMap(([, text = '']) => text.split(/[^\w./*-]+/))
  const files = [...new Bun.Glob('{src,client}/**/*.{ts,tsx}').scanSync({ cwd: root })]
  const isThere = (word: string) => files.some((file) => file.endsWith(`/${word}`))
  expect(words.filter((word) => /^[\w./-]+\.ts$/.test(word) && !isThere(word))).toEqual([])
})

test('docs/engineering/decisions/rules.md has every rule that code cites', () => {
  const rows = readFileSync(join(root, 'docs/engineering/decisions/rules.md'), 'utf8').matchAll(
    /^\| ([^|]+?) +\|/gm,
  )
  const rules = new Set([...rows].flatMap(([, first = '']) => first.split(', ')))
  const cited = [...new Bun.Glob('{src,client,test}/**/*.{ts,tsx}').scanSync({ cwd: root })].flatMap((path) =>
    [
      ...readFileSync(join(root, path), 'utf8').matchAll(/\b(?:[Dd]esign (D\d+)|[Ss]pec (\d(?:\.\d)?)\b)/g),
    ].map(([, design, spec]) => design ?? spec ?? ''),
  )
  expect(cited.length).toBeGreaterThan(100)
  expect([...new Set(cited)].filter((each) => !rules.has(each))).toEqual([])
})
