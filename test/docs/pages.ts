import { readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { slugOf } from '../../release/site/pages.ts'

// Reads the Markdown pages of the repository for the tests.

export const root = join(import.meta.dir, '../..')

export interface Sample {
  /** From the fence, such as `sh`. Empty without one. */
  readonly language: string
  readonly code: string
  /** Page and line, such as `docs/quick-start.md:12`. */
  readonly at: string
}

export interface Page {
  /** Relative to the root of the repository, such as `docs/README.md`. */
  readonly path: string
  readonly text: string
  /** The anchors of its headings, without `#`. */
  readonly anchors: ReadonlySet<string>
  /** Targets of its links and pictures, as written. */
  readonly targets: readonly string[]
  readonly samples: readonly Sample[]
  /** Code within a sentence or a cell of a table. */
  readonly spans: readonly string[]
}

/** Every page, except those of packages and build output. */
export const pages: readonly Page[] = [...new Bun.Glob('**/*.md').scanSync({ cwd: root, dot: true })]
  .filter((path) => !/(?:^|\/)(?:node_modules|dist|data|\.git)\//.test(path))
  .sort()
  .map((path) => readPage(path, readFileSync(join(root, path), 'utf8')))

/** The samples of all pages in these languages. */
export function samplesIn(...languages: readonly string[]): readonly Sample[] {
  return pages.flatMap(({ samples }) => samples).filter(({ language }) => languages.includes(language))
}

export function pageAt(path: string): Page {
  const page = pages.find((each) => each.path === path)
  if (!page) throw new Error(`there is no page ${path}`)
  return page
}

/** Parses a page as CommonMark with GitHub tables. */
export function readPage(path: string, text: string): Page {
  const anchors = new Set<string>()
  const targets: string[] = []
  const samples: Sample[] = []
  const spans: string[] = []
  let searchedTo = 0
  const lineOf = (code: string): number => {
    const at = Math.max(text.indexOf(code, searchedTo), searchedTo)
    searchedTo = at + code.length
    return text.slice(0, at).split('\n').length
  }
  Bun.markdown.render(text, {
    heading: (title) => {
      const slug = slugOf(title)
      let anchor = slug
      for (let count = 1; anchors.has(anchor); count++) anchor = `${slug}-${count}`
      anchors.add(anchor)
      return title
    },
    link: (words, { href }) => {
      targets.push(href)
      return words
    },
    image: (words, { src }) => {
      targets.push(src)
      return words
    },
    // Pictures for light and dark themes are HTML.
    html: (tags) => {
      for (const [, , target = ''] of tags.matchAll(/\b(src|srcset|href)="([^"]*)"/g)) targets.push(target)
      return ''
    },
    codespan: (code) => {
      spans.push(code)
      return code
    },
    code: (code, meta) => {
      samples.push({ language: meta?.language ?? '', code, at: `${path}:${lineOf(code)}` })
      return ''
    },
  })
  return { path, text, anchors, targets, samples, spans }
}

/** The file and anchor of a link within the repository. */
export function resolved({ path }: Page, target: string): { path: string; anchor: string | undefined } {
  const [file = '', anchor] = target.split('#')
  return { path: file === '' ? path : normalize(join(dirname(path), decodeURI(file))), anchor }
}

export function isWeb(target: string): boolean {
  return /^[a-z][a-z0-9+.-]*:/i.test(target)
}

/** The problems of these samples, each with its page and line. */
export function problemsOf(
  checked: readonly Sample[],
  check: (sample: Sample) => string | undefined,
): string[] {
  return checked.flatMap((sample) => {
    const problem = check(sample)
    return problem === undefined ? [] : [`${sample.at}: ${problem}`]
  })
}
