import { join, relative } from 'node:path'
import { TextlintKernel, type TextlintKernelOptions } from '@textlint/kernel'
import markdown from '@textlint/textlint-plugin-markdown'
import plain from '@textlint/textlint-plugin-text'
import { type Prose, proseInCode, proseInLines } from './prose-in-code.ts'
import { longSentences, wordChoice } from './rules.ts'

// Checks what people read against the rules of the project's English: `bun lint/prose.ts [FILE…]`. Prints FILE:LINE and the
// fault; exits with status 1 if there is one.

const root = join(import.meta.dir, '..')

const patterns = [
  '*.md',
  '{docs,deploy,client,examples,test}/**/*.md',
  '{src,test,bench,release,client,examples,drizzle,lint}/**/*.{ts,tsx,js}',
  'deploy/**/*.{yml,yaml,service,conf,Caddyfile,json}',
  '.github/**/*.yml',
]

/** Files with texts of others, and the list of the terms. */
const leftOut = /node_modules|^lint\/terms\.ts|^client\/contract\.ts|\/palette\.css/

const kernel = new TextlintKernel()

async function faultsOf(file: string): Promise<readonly string[]> {
  const source = await Bun.file(join(root, file)).text()
  const isMarkdown = file.endsWith('.md')
  const { text, lineOf } = isMarkdown
    ? { text: source, lineOf: (line: number) => line }
    : textOf(/\.(?:tsx?|js)$/.test(file) ? proseInCode(source) : proseInLines(source))
  const options: TextlintKernelOptions = {
    filePath: file,
    ext: isMarkdown ? '.md' : '.txt',
    plugins: [
      { pluginId: 'markdown', plugin: markdown },
      { pluginId: 'text', plugin: plain },
    ],
    rules: [
      { ruleId: 'word-choice', rule: wordChoice(file) },
      { ruleId: 'long-sentences', rule: longSentences },
    ],
  }
  const { messages } = await kernel.lintText(text, options)
  return messages.map(({ loc, message }) => `${file}:${lineOf(loc.start.line)}: ${message}`)
}

/** One text of all prose of a file, and the line of the file for each of its lines. */
function textOf(all: readonly Prose[]): { text: string; lineOf: (line: number) => number } {
  const lines: number[] = []
  for (const { line, text } of all) {
    lines.push(...text.split('\n').map((_, index) => line + index), line)
  }
  const text = all
    .map((each) => each.text.replace(/`[^`\n]*`/g, (code) => 'x'.repeat(code.length)))
    .join('\n\n')
  return { text, lineOf: (line) => lines[line - 1] ?? 1 }
}

const given = process.argv.slice(2).map((path) => relative(root, path))
const files =
  given.length > 0
    ? given
    : [
        ...new Set(
          patterns.flatMap((pattern) => [...new Bun.Glob(pattern).scanSync({ cwd: root, dot: true })]),
        ),
      ]
let count = 0
for (const file of files.filter((each) => !leftOut.test(each)).sort()) {
  for (const fault of await faultsOf(file)) {
    count++
    console.log(fault)
  }
}
console.log(count === 0 ? `${files.length} files read: nothing to correct` : `${count} to correct`)
process.exitCode = count === 0 ? 0 : 1
