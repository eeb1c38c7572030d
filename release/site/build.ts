import { cpSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { assets, llmsText, pages, siteText, textOf } from './pages.ts'

// Builds the site of the documentation in dist/site: `bun run docs:site`, with its URL in DOCS_URL.

const root = join(import.meta.dir, '../..')
const source = join(root, 'dist/site-source')
const site = join(root, 'dist/site')

rmSync(source, { recursive: true, force: true })
mkdirSync(join(source, '.vitepress'), { recursive: true })
symlinkSync(join(import.meta.dir, 'node_modules'), join(source, 'node_modules'))
writeFileSync(
  join(source, '.vitepress/config.ts'),
  `export { default } from '../../../release/site/config.ts'\n`,
)

function copyTo(folder: string): void {
  for (const [path, there] of pages) {
    mkdirSync(dirname(join(folder, there)), { recursive: true })
    writeFileSync(join(folder, there), siteText(path, textOf(path)))
  }
  for (const [path, there] of assets) cpSync(join(root, path), join(folder, there))
}

copyTo(source)
const { exitCode } = Bun.spawnSync(
  [
    process.execPath,
    '--bun',
    join(import.meta.dir, 'node_modules/vitepress/bin/vitepress.js'),
    'build',
    source,
  ],
  { stdio: ['ignore', 'inherit', 'inherit'], env: { ...process.env, VITE_EXTRA_EXTENSIONS: 'jq' } },
)
if (exitCode !== 0) process.exit(exitCode)
copyTo(site)
writeFileSync(join(site, 'llms.txt'), llmsText())
