#!/usr/bin/env node
// The command `otpost` of the npm package: the binary for this machine, from its package, or else this package's JavaScript with Bun.
import { spawn, spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

const { resolve } = createRequire(import.meta.url)
const { platform, arch } = process
const system = { darwin: 'macos', win32: 'windows' }[platform] ?? platform
process.report.excludeNetwork = true
const isMusl = platform === 'linux' && process.report.getReport().header.glibcVersionRuntime === undefined
const name = `@otpost/${system}-${arch}${isMusl ? '-musl' : ''}`

function binary() {
  const path = resolved(`${name}/otpost${platform === 'win32' ? '.exe' : ''}`)
  return path && [path]
}

function withBun() {
  const hasBun = !spawnSync('bun', ['--version'], { stdio: 'ignore' }).error
  const main = fileURLToPath(new URL('../server/main.js', import.meta.url))
  return hasBun && resolved('better-sqlite3') ? ['bun', '--no-env-file', main] : undefined
}

function resolved(module) {
  try {
    return resolve(module)
  } catch {
    return undefined
  }
}

const command = binary() ?? withBun()
if (!command) {
  console.error(
    `There is no ${name} here. Install otpost with optional dependencies, or install Bun and better-sqlite3: npx -p otpost -p better-sqlite3 otpost`,
  )
  process.exit(1)
}
const [program, ...args] = command
const child = spawn(program, [...args, ...process.argv.slice(2)], { stdio: 'inherit' })
// A terminal sends SIGINT to both. A second one would end a server that waits for open requests.
process.on('SIGINT', () => {})
for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
child.on('error', ({ message }) => {
  console.error(`${program}: ${message}`)
  process.exit(1)
})
child.on('exit', (code) => process.exit(code ?? 1))
