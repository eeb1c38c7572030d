import { describe, expect, test } from 'bun:test'
import { dirname, join, relative } from 'node:path'
import { threads } from '../../release/build.ts'

// The parts of a binary; test/compiled.system.ts tests its behaviour.

const root = join(import.meta.dir, '../..')

describe('the build', () => {
  test('includes every file that runs as a thread', async () => {
    const started: string[] = []
    for (const path of new Bun.Glob('src/**/*.{ts,tsx}').scanSync(root)) {
      const text = await Bun.file(join(root, path)).text()
      for (const [, file = ''] of text.matchAll(/new Worker\(\s*new URL\(\s*'([^']+)'/g)) {
        started.push(relative(root, join(root, dirname(path), file)))
      }
      // A worker that starts in another way would be missing without an error.
      const count = text.split(/new Worker\(/).length - 1
      const known = text.split(/new Worker\(\s*new URL\(\s*'/).length - 1
      expect({ path, count }).toEqual({ path, count: known })
    }
    expect(started.sort()).toEqual([...threads].sort())
    // A binary has them in one folder, where each is found by its file name alone.
    const names = threads.map((path) => path.split('/').at(-1))
    expect(new Set(names).size).toBe(threads.length)
  })

  test('rejects an unknown target, and lists the known ones', () => {
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
