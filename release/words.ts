import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { table } from './pages.ts'

// Counts the words of each page for users, as `wc -w` does: bun release/words.ts. Exits with status 1 if there are too many.

const root = join(import.meta.dir, '..')

/** More are not read. A new fact replaces another, or its evidence goes to docs/engineering. */
export const mostWords = 55_000

const usersPages = [
  'README.md',
  'docs/*.md',
  'docs/relays/*.md',
  'docs/providers/*.md',
  'docs/api/*.md',
  'client/README.md',
  'deploy/README.md',
]

/** Most first. */
const pages = usersPages
  .flatMap((pattern) => [...new Bun.Glob(pattern).scanSync({ cwd: root })])
  .map((page) => ({ page, words: readFileSync(join(root, page), 'utf8').match(/\S+/g)?.length ?? 0 }))
  .sort((one, other) => other.words - one.words)

export const totalWords = pages.reduce((sum, { words }) => sum + words, 0)

if (import.meta.main) {
  const rows = pages.map(({ words, page }) => [String(words), page])
  console.log(table(['words', 'page'], rows))
  console.log(`\n${totalWords} words on ${pages.length} pages; at most ${mostWords}`)
  process.exitCode = totalWords > mostWords ? 1 : 0
}
