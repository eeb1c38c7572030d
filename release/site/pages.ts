import { readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import packageJson from '../../package.json'

// Which files of the repository are pages of the site, where they are there, and their text with the links of the site.

const root = join(import.meta.dirname, '../..')

/** Ends with a slash. Without DOCS_URL: the root of any server. */
export const siteUrl = `${(process.env.DOCS_URL ?? '').replace(/\/$/, '')}/`

/** By the path in the repository: the path in the site. A README is the index of its folder, docs/ is the root. */
export const pages: ReadonlyMap<string, string> = new Map(
  filesIn(
    'docs/**/*.md',
    '{README,CHANGELOG,SECURITY}.md',
    '{client,deploy}/README.md',
    'examples/*/README.md',
  ).map((path) => [path, sitePath(path)]),
)

/** Pictures and other files that pages link. */
export const assets: ReadonlyMap<string, string> = new Map(
  filesIn('docs/**/*.{svg,png,jq}').map((path) => [path, sitePath(path)]),
)

function filesIn(...patterns: readonly string[]): string[] {
  return patterns.flatMap((pattern) => [...new Bun.Glob(pattern).scanSync({ cwd: root })].sort())
}

function sitePath(path: string): string {
  if (path === 'docs/README.md') return 'contents.md'
  return path
    .replace(/^docs\//, '')
    .replace(/README\.md$/, 'index.md')
    .replace(/^(?:CHANGELOG|SECURITY)\.md$/, (name) =>
      name === 'CHANGELOG.md' ? 'changelog.md' : 'report-a-vulnerability.md',
    )
}

/** GitHub's anchor of a heading: lower case, without punctuation, a hyphen for each space. */
export function slugOf(title: string): string {
  return title
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc} -]/gu, '')
    .replaceAll(' ', '-')
}

/** A code block or span, a definition of a link, a link with its text, or an attribute of a tag. */
const part =
  /^( *)(```+)[\s\S]*?^\1\2 *$|(`+)[^`](?:[\s\S]*?[^`])??\3(?!`)|^\[([^\]\n]+)\]: +(\S+)\n|(!?)\[((?:`[^`]*`|\[[^\]]*\]|[^[\]`])*)\]\(([^)\s]+)\)|\b(src|srcset|href)="([^"]+)"/gm

/** The text of a page, with its links as they are in the site. */
export function siteText(path: string, text: string): string {
  const gone = new Set<string>()
  const changed = text.replace(part, (whole, ...groups: (string | undefined)[]) => {
    const [, , , name, definition, picture = '', words = '', link, attribute, value] = groups
    const target = definition ?? link ?? value
    if (target === undefined) return whole
    const there = siteTarget(path, target)
    if (attribute !== undefined) return `${attribute}="${there ?? '#'}"`
    if (name !== undefined) {
      if (there === undefined) gone.add(name)
      return there === undefined ? '' : `[${name}]: ${there}\n`
    }
    return there === undefined ? words : `${picture}[${siteText(path, words)}](${there})`
  })
  return changed.replace(/(?:\[([^[\]]+)\])?\[([^[\]]+)\](?![(:])/g, (whole, words, name) =>
    gone.has(name) ? (words ?? name) : whole,
  )
}

/** Undefined: a file outside of the site, and package.json has no URL of the repository. */
function siteTarget(path: string, target: string): string | undefined {
  if (/^(?:[a-z][a-z0-9+.-]*:|#)/i.test(target)) return target
  const [file = '', anchor] = target.split('#')
  const linked = posix.join(posix.dirname(path), decodeURI(file)).replace(/\/$/, '')
  const there = pages.get(linked) ?? pages.get(`${linked}/README.md`) ?? assets.get(linked)
  const end = anchor === undefined ? '' : `#${anchor}`
  if (there === undefined) return repositoryUrl && `${repositoryUrl}/blob/HEAD/${linked}${end}`
  const relative = posix.relative(posix.dirname(sitePath(path)), there)
  return `${relative.startsWith('.') ? '' : './'}${relative}${end}`
}

const manifest: { description: string; repository?: { url: string } } = packageJson
const repositoryUrl = manifest.repository?.url.replace(/^git\+|\.git$/g, '')

export interface Entry {
  readonly text: string
  /** In the site, such as `guard.md`; undefined for a task with several pages. */
  readonly path?: string
  readonly items?: readonly Entry[]
}

/** The sections, tasks and pages of docs/README.md. */
export function contents(): readonly Entry[] {
  const [, ...sections] = textOf('docs/README.md').split(/^## /m)
  return sections.map((section) => {
    const [text = '', ...lines] = section.split('\n')
    return { text, items: lines.flatMap(entriesOf) }
  })
}

/** The pages that a line names; those of a row with several, below its task. */
function entriesOf(line: string): readonly Entry[] {
  const links = [...line.matchAll(/\[([^\]]+)\]\(([^)#\s]+)/g)].flatMap(([, text = '', target = '']) => {
    const path = pages.get(posix.join('docs', target))
    return path === undefined ? [] : [{ text: capital(text), path }]
  })
  const task = /^\| (.*?) +\|/.exec(line)?.[1]
  return task === undefined || links.length < 2
    ? links
    : [{ text: capital(task.replaceAll('`', '')), items: links }]
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

export function textOf(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}

/** The index of all pages for coding agents, as llmstxt.org describes it. */
export function llmsText(): string {
  const titles = new Map(
    [...pages].map(([path, there]) => [there, /^# (.+)$/m.exec(textOf(path))?.[1] ?? there] as const),
  )
  const leaves = ({ items, path }: Entry): string[] => items?.flatMap(leaves) ?? (path ? [path] : [])
  const left = new Set(titles.keys())
  const list = (title: string, paths: Iterable<string>) =>
    `## ${title}\n\n${[...paths].map((path) => `- [${titles.get(path)}](${siteUrl}${path})\n`).join('')}`
  const sections = contents().map((section) => {
    const paths = [...new Set(leaves(section))].filter((path) => left.delete(path))
    return list(section.text, paths)
  })
  return [`# otpost\n\n> ${packageJson.description}\n`, ...sections, list('Optional', left)].join('\n')
}
