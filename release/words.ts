import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { alignedTable } from './pages.ts'

// Counts the words of each page for users, as `wc -w` does: bun release/words.ts. Exits with status 1 if there are too many.

const root = join(import.meta.dir, '..')

const most = 55_000

const usersPages = [
  'README.md',
  'docs/*.md',
  'docs/relays/*.md',
  'docs/providers/*.md',
  'docs/api/*.md',
  'client/README.md',
  'deploy/README.md',
]

const counted = usersPages
  .flatMap((pattern) => [...new Bun.Glob(pattern).scanSync({ cwd: root })])
  .map((page) => ({ page, words: wordsIn(readFileSync(join(root, page), 'utf8')) }))
  .sort((one, other) => other.words - one.words)
const total = counted.reduce((sum, { words }) => sum + words, 0)

console.log(
  alignedTable(
    ['words', 'page'],
    counted.map(({ words, page }) => [String(words), page]),
  ),
)
console.log(`\n${total} words on ${counted.length} pages; at most ${most}`)
process.exitCode = total > most ? 1 : 0

function wordsIn(text: string): number {
  return text.match(/\S+/g)?.length ?? 0
}
