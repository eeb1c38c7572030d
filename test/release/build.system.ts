import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { targets, threads } from '../../release/build.ts'

// What a binary is made of; test/compiled.system.ts is about what it does.

const root = join(import.meta.dir, '../..')

describe('the build', () => {
  test('puts in every file that runs as a thread', async () => {
    const started: string[] = []
    for (const path of new Bun.Glob('src/**/*.{ts,tsx}').scanSync(root)) {
      const text = await Bun.file(join(root, path)).text()
      for (const [, file = ''] of text.matchAll(/new Worker\(\s*new URL\(\s*'([^']+)'/g)) {
        started.push(relative(root, join(root, dirname(path), file)))
      }
      // One that is started in another way would be missing without a word.
      const count = text.split(/new Worker\(/).length - 1
      const known = text.split(/new Worker\(\s*new URL\(\s*'/).length - 1
      expect({ path, count }).toEqual({ path, count: known })
    }
    expect(started.sort()).toEqual([...threads].sort())
    // They are side by side in a binary, where each is found by its name alone.
    const names = threads.map((path) => path.split('/').at(-1))
    expect(new Set(names).size).toBe(threads.length)
  })

  test('has a SQLite for every target', () => {
    const prebuilt = readdirSync(join(root, 'node_modules/better-sqlite3/prebuilds'))
    for (const { sqlite } of Object.values(targets)) expect(prebuilt).toContain(`${sqlite}.node`)
  })

  test('refuses a target that there is not, and names those that there are', () => {
    const { exitCode, stderr } = Bun.spawnSync([process.execPath, 'release/build.ts', '--target', 'amiga'], {
      cwd: root,
      stderr: 'pipe',
    })
    expect(exitCode).toBe(1)
    expect(stderr.toString()).toStartWith(
      'build: there is no target amiga: choose among linux-x64, linux-arm64, ',
    )
  })
})
