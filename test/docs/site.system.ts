import { beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { temporaryFolder } from '../support/app.ts'
import { browserPath } from '../support/browser.ts'
import { expectAccessible, narrow, wide } from '../support/looks.ts'
import { useBrowser } from '../support/use-browser.ts'
import { isWeb, pages, readPage, resolved, root } from './pages.ts'

// The site that `bun run docs:site` builds, for a server with the site in a folder.

const url = 'https://docs.example.org/otpost'
const folder = join(root, 'dist/site')
const isInstalled = existsSync(join(root, 'release/site/node_modules/vitepress'))
const without = isInstalled ? '' : ' (needs bun install --cwd release/site)'

const filesOf = (ending: string) => [...new Bun.Glob(`**/*.${ending}`).scanSync({ cwd: folder })].sort()
const textOf = (path: string) => readFileSync(join(folder, path), 'utf8')

describe.skipIf(!isInstalled)(`the site of the documentation${without}`, () => {
  const browser = useBrowser()

  beforeAll(() => {
    const { exitCode, stderr } = Bun.spawnSync([process.execPath, 'release/site/build.ts'], {
      cwd: root,
      env: { ...process.env, DOCS_URL: url },
    })
    expect(exitCode, stderr.toString()).toBe(0)
  }, 300_000)

  test('has each page of docs as HTML and as Markdown, and llms.txt lists it', () => {
    const paths = pages
      .map(({ path }) => path)
      .filter((path) => path.startsWith('docs/') && path !== 'docs/README.md')
      .map((path) => path.replace(/^docs\//, '').replace(/README\.md$/, 'index.md'))
    const expected = [...paths, 'contents.md', 'index.md', 'changelog.md']
    const built = filesOf('html')
    const markdown = filesOf('md')
    const listed = new Set(readPage('llms.txt', textOf('llms.txt')).targets)
    expect(paths.length).toBeGreaterThan(80)
    expect(expected.filter((path) => !built.includes(path.replace(/md$/, 'html')))).toEqual([])
    expect(expected.filter((path) => !markdown.includes(path))).toEqual([])
    expect(markdown.filter((path) => !listed.has(`${url}/${path}`))).toEqual([])
    expect(listed.size).toBe(markdown.length)
  })

  test('has no broken link', async () => {
    const anchors = new Map<string, Set<string>>()
    const links: { from: string; to: string }[] = []
    for (const from of filesOf('html')) {
      const ids = new Set<string>()
      anchors.set(from, ids)
      const rewriter = new HTMLRewriter().on('*', {
        element(element) {
          const id = element.getAttribute('id')
          if (id !== null) ids.add(id)
          for (const name of ['href', 'src', 'srcset']) {
            const to = element.getAttribute(name)
            if (to !== null) links.push({ from, to })
          }
        },
      })
      await rewriter.transform(new Response(textOf(from))).text()
    }
    const isThere = ({ from, to }: { from: string; to: string }) => {
      const { href, pathname, hash } = new URL(to, `${url}/${from}`)
      if (!href.startsWith(`${url}/`) && href !== url) return isWeb(to)
      const path = decodeURI(pathname).replace(/^\/otpost\/?/, '')
      const page = [path, `${path}.html`, posix.join(path, 'index.html')].find((each) => anchors.has(each))
      if (page === undefined) return hash === '' && path !== '' && existsSync(join(folder, path))
      return hash === '' || anchors.get(page)?.has(decodeURIComponent(hash.slice(1))) === true
    }
    expect(links.length).toBeGreaterThan(5000)
    expect(links.filter((link) => !isThere(link))).toEqual([])

    const inMarkdown = filesOf('md').flatMap((path) => {
      const page = readPage(path, textOf(path))
      return page.targets.filter((to) => !isWeb(to)).map((to) => ({ page, to, ...resolved(page, to) }))
    })
    const broken = inMarkdown.filter(
      ({ path, anchor }) =>
        !existsSync(join(folder, path)) ||
        (anchor !== undefined && !readPage(path, textOf(path)).anchors.has(anchor)),
    )
    expect(broken.map(({ page, to }) => `${page.path}: ${to}`)).toEqual([])
  })

  test('shows placeholders and the names of files that are not in the site', () => {
    expect(textOf('texts.html')).toContain('<code>{{otp}}</code>')
    expect(textOf('engineering/asvs.md')).not.toMatch(/\[[\w./-]+\.tsx?\]/)
  })

  test('has the pages that messages name', async () => {
    const output = temporaryFolder()
    const build = `await (await import('${root}/release/build.ts')).buildModules('${output.path}', 'unknown')`
    const run = (...line: string[]) =>
      Bun.spawnSync([process.execPath, ...line], { cwd: root, env: { ...process.env, DOCS_URL: `${url}/` } })
    expect(run('-e', build).stderr.toString()).toBe('')
    const help = run(join(output.path, 'main.js'), '--help').stdout.toString()
    output.remove()
    expect(help).toContain(`see ${url}/settings.html.`)

    const files = [...new Bun.Glob('src/**/*.{ts,tsx}').scanSync({ cwd: root })]
    const code = files.map((path) => readFileSync(join(root, path), 'utf8')).join('\n')
    const names = [...code.matchAll(/docsAt\('([^']+)'\)/g)].map(([, name = '']) => name)
    const ofProblems = [...code.matchAll(/\{ docs: '([a-z-]+)' \}/g)].map(([, name]) => `${name}.md`)
    expect(ofProblems.length).toBeGreaterThan(3)
    expect(names.length).toBeGreaterThan(10)
    const missing = [...names, ...ofProblems].filter(
      (name) => !existsSync(join(folder, name.endsWith('.md') ? name : `${name}/index.md`)),
    )
    expect(missing).toEqual([])
  }, 60_000)

  test.skipIf(!browserPath).each([
    ['light', wide],
    ['dark', narrow],
  ] as const)(
    'is searched and read in Chromium, %s',
    async (colorScheme, viewport) => {
      await using server = Bun.serve({
        port: 0,
        hostname: '127.0.0.1',
        async fetch(request) {
          const path = decodeURI(new URL(request.url).pathname).replace(/^\/otpost\//, '')
          const file = Bun.file(join(folder, path === '' || path.endsWith('/') ? `${path}index.html` : path))
          return (await file.exists()) ? new Response(file) : new Response('', { status: 404 })
        },
      })
      await using visitor = await browser.visit({ colorScheme, viewport })
      const { page, complaints, errors } = visitor
      await visitor.open({ page: new URL('/otpost/', server.url) })
      await page.getByRole('heading', { level: 1, name: 'otpost' }).waitFor()
      expect(await page.evaluate('document.documentElement.classList.contains("dark")')).toBe(
        colorScheme === 'dark',
      )
      await expectAccessible(page, 'the front page')

      await page.getByRole('button', { name: 'Search' }).click()
      const top = page.locator('[role=listbox] a').first()
      for (const [words, path] of [
        ['no code arrives', 'troubleshooting.html#no-code-arrives'],
        ['deny', 'stop-sms-pumping.html#'],
        ['TWILIO_FROM', 'settings.html#twilio'],
        ['resend', 'http-api.html#post-otpresend'],
        ['CONFIG_FILE', 'management.html#the-file'],
      ] as const) {
        await page.getByRole('searchbox').fill(words)
        await top.and(page.locator(`[href*="/${path}"]`)).waitFor()
      }
      await page.getByRole('searchbox').fill('guard')
      await page.locator('[role=listbox] a[href^="/otpost/guard.html"]').first().click()
      await page.waitForURL('**/otpost/guard.html*')
      await page.getByRole('heading', { level: 1, name: /guard/i }).waitFor()
      await expectAccessible(page, 'a page')
      await page.reload()
      await page.getByRole('heading', { level: 1, name: /guard/i }).waitFor()
      expect({ complaints, errors }).toEqual({ complaints: [], errors: [] })
    },
    180_000,
  )
})
