import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import packageJson from '../../package.json'
import { targets } from '../../release/build.ts'
import { newestSection, problemsOf, type ReleaseFacts, readChangelog } from '../../release/check.ts'
import { signatureProblem, withoutSignature } from '../../release/macho.ts'
import { commitsOf, notesOf } from '../../release/notes.ts'
import { archiveOf, checksumsOf, packBinary, requirePrebuilt } from '../../release/pack.ts'
import { temporaryFolder } from '../support/app.ts'

// The scripts that .github/workflows/release.yml runs to turn a commit into a release.

let folder: ReturnType<typeof temporaryFolder>
beforeAll(() => {
  folder = temporaryFolder()
})
afterAll(() => folder.remove())

/** Runs a tool to its end in the folder of this file. Returns its output. */
function run(...command: string[]): string {
  const { success, stdout, stderr } = Bun.spawnSync(command, {
    cwd: folder.path,
    env: { ...process.env, TZ: 'UTC', GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  if (!success) throw new Error(`${command.join(' ')}: ${stderr}`)
  return stdout.toString()
}

describe('a tag', () => {
  const right: ReleaseFacts = {
    tag: 'v1.2.3',
    version: '1.2.3',
    changelog: '# Changelog\n\n## 1.2.3 - 2026-11-30\n\n- Something.\n\n## 1.2.2 - 2026-11-01\n\n- Else.\n',
  }

  test('may be released if all versions agree', () => {
    expect(problemsOf(right)).toEqual([])
    const changelog = '## 2.0.0-rc.1 - 2026-11-30\n\n- Something.'
    expect(problemsOf({ ...right, tag: 'v2.0.0-rc.1', version: '2.0.0-rc.1', changelog })).toEqual([])
  })

  test.each<[string, Partial<ReleaseFacts>, string]>([
    ['is another version than package.json', { tag: 'v1.2.4' }, 'the tag is v1.2.4'],
    ['has no v', { tag: '1.2.3' }, 'the tag is 1.2.3'],
    [
      'comes before its section of the changelog',
      { changelog: '## 1.2.2 - 2026-11-01\n\n- Else.\n' },
      'begins with 1.2.2',
    ],
    ['has no changelog', { changelog: '' }, 'begins with no version'],
    ['has no date', { changelog: '## 1.2.3 - Unreleased\n\n- Something.\n' }, 'is dated Unreleased'],
    [
      'has a day that is none',
      { changelog: '## 1.2.3 - 2026-02-30\n\n- Something.\n' },
      'is dated 2026-02-30',
    ],
    [
      'has an empty section',
      { changelog: '## 1.2.3 - 2026-11-30\n\n## 1.2.2 - 2026-11-01\n' },
      'says nothing of 1.2.3',
    ],
    [
      'leaves text under a heading of no version',
      { changelog: `## Unreleased\n\n- Else.\n\n${right.changelog}` },
      'a heading that is not a version',
    ],
  ])('that %s may not be', (_, wrong, says) => {
    expect(problemsOf({ ...right, ...wrong })).toEqual([expect.stringContaining(says)])
  })

  test.each(['1.2', '01.2.3', '1.2.3+build', 'v1.2.3', '1.2.3-01'])(
    'of %s, which is not SemVer, may not be released',
    (version) => {
      const changelog = `## ${version} - 2026-11-30\n\n- Something.\n`
      expect(problemsOf({ ...right, version, tag: `v${version}`, changelog })).toEqual([
        expect.stringContaining('SemVer'),
      ])
    },
  )
})

test('CHANGELOG.md begins with the version of package.json', () => {
  expect(newestSection(readChangelog())?.version).toBe(packageJson.version)
})

describe('the notes of a release', () => {
  const commit = { hash: 'abc1234', subject: 'Something' }

  test('have the section of the changelog, instructions for checking the files, and the commits', () => {
    const notes = notesOf({
      text: '- Something.',
      repository: 'a/b',
      previousTag: 'v1.0.0',
      commits: [commit],
    })
    expect(notes).toStartWith('- Something.\n')
    expect(notes).toContain('gh attestation verify FILE --repo a/b\n')
    expect(notes).toEndWith('## Commits since v1.0.0\n\n- abc1234 Something\n')
  })

  test('have no mentions and no links, even from commit messages', () => {
    const commits = [{ ...commit, subject: '<img src=x> [a](b) @someone #12 `c` *d*' }]
    expect(notesOf({ text: '', repository: 'a/b', previousTag: undefined, commits })).toEndWith(
      '## Commits\n\n- abc1234 \\<img src=x\\> \\[a\\](b) @\u200bsomeone #\u200b12 \\`c\\` \\*d\\*\n',
    )
  })

  test.skipIf(!Bun.which('git'))(
    'list the commits since the previous tag, the newest first (needs git)',
    () => {
      const repository = join(folder.path, 'repository')
      mkdirSync(repository)
      const git = (...args: string[]) =>
        run('git', '-C', repository, '-c', 'user.name=a', '-c', 'user.email=a@b.example', ...args)
      git('init', '--quiet')
      for (const [subject, ...tags] of [
        ['First', 'v0.1.0'],
        ['Second thoughts', 'unrelated'],
        ['Third', 'v0.2.0'],
        ['Fourth'],
      ]) {
        git('commit', '--quiet', '--allow-empty', '--message', `${subject}\n\nWhy.`)
        for (const tag of tags) git('tag', tag)
      }
      const told = (tag: string) => {
        const { previousTag, commits } = commitsOf(tag, repository)
        return [previousTag, ...commits.map(({ subject }) => subject)]
      }
      expect(told('v0.2.0')).toEqual(['v0.1.0', 'Third', 'Second thoughts'])
      expect(told('v0.1.0')).toEqual([undefined, 'First'])
      expect(() => commitsOf('v9.9.9', repository)).toThrow('v9.9.9')
    },
  )
})

describe('an archive', () => {
  const tools = ['tar', 'gzip', 'zip', 'unzip', 'sha256sum'].filter((tool) => !Bun.which(tool))

  test.skipIf(tools.length > 0)(
    'contains the executable program, completion and the license, and is reproducible (needs tar, gzip, zip, unzip, sha256sum)',
    async () => {
      const binary = join(folder.path, 'otpost-linux-x64')
      writeFileSync(binary, '#!/bin/sh\necho started\n')
      const made = join(folder.path, 'made')
      mkdirSync(made)
      const names = [archiveOf('linux-x64'), archiveOf('windows-x64')] as const
      const make = async () => {
        packBinary('linux-x64', binary, join(made, names[0]))
        packBinary('windows-x64', binary, join(made, names[1]))
        return checksumsOf(made)
      }
      const checksums = await make()
      expect(await make()).toBe(checksums)
      run('tar', '-xzf', join(made, names[0]))
      expect(run('./otpost')).toBe('started\n')
      const completions = [
        'completions/',
        ...['_otpost', 'otpost', 'otpost.fish'].map((name) => `completions/${name}`),
      ]
      const inside = ['LICENSE', ...completions, 'otpost']
      expect(run('tar', '-tzf', join(made, names[0])).trim().split('\n')).toEqual(inside)
      expect(run('unzip', '-Z1', join(made, names[1]))).toBe('LICENSE\notpost.exe\n')

      writeFileSync(join(made, 'SHA256SUMS'), checksums)
      expect(run('sh', '-c', 'cd made && sha256sum --check --strict SHA256SUMS')).toBe(
        names.map((name) => `${name}: OK\n`).join(''),
      )
    },
  )
})

describe('the SQLite for', () => {
  const prebuilds = join(import.meta.dir, '../../node_modules/better-sqlite3/prebuilds')
  const prebuilt = (name: string) => readFileSync(join(prebuilds, `${name}.node`))
  /** The machine type of a library, from its first bytes. */
  const machineOf = (file: Buffer): string => {
    if (file.readUInt32BE(0) === 0x7f454c46) {
      const machine = { 62: 'x64', 183: 'arm64' }[file.readUInt16LE(18)]
      return `linux${file.includes('libc.musl-') ? 'musl' : ''}-${machine}`
    }
    if (file.readUInt32LE(0) === 0xfeedfacf) {
      return `darwin-${{ 16777223: 'x64', 16777228: 'arm64' }[file.readUInt32LE(4)]}`
    }
    const header = file.readUInt32LE(0x3c)
    return `win32-${{ 34404: 'x64', 43620: 'arm64' }[file.readUInt16LE(header + 4)]}`
  }

  test.each(Object.values(targets).map(({ sqlite }) => [sqlite]))('%s has that machine type', (sqlite) => {
    expect(machineOf(prebuilt(sqlite))).toBe(sqlite)
  })

  test.each(['linux-x64', 'linux-arm64'] as const)('%s needs glibc 2.34 or older', (name) => {
    const needed =
      prebuilt(name)
        .toString('latin1')
        .match(/GLIBC_2\.\d+/g) ?? []
    const newest = Math.max(...needed.map((version) => Number(version.slice('GLIBC_2.'.length))))
    expect(newest, 'The README says which systems the binaries run on.').toBe(34)
  })

  test('a library for another machine stops the release', () => {
    const binary = join(folder.path, 'binary')
    const others = ['linux-arm64', 'darwin-x64', 'win32-x64'].map(prebuilt)
    writeFileSync(binary, Buffer.concat([Buffer.from('Bun'), prebuilt('linux-x64'), Buffer.from('more')]))
    expect(() => requirePrebuilt('linux-x64', binary)).not.toThrow()
    expect(() => requirePrebuilt('linux-arm64', binary)).toThrow('and has linux-x64')
    writeFileSync(binary, Buffer.concat([prebuilt('linux-x64'), ...others]))
    expect(() => requirePrebuilt('linux-x64', binary)).toThrow('linux-arm64')
    writeFileSync(binary, 'Bun')
    expect(() => requirePrebuilt('linux-x64', binary)).toThrow('none')
  })

  test('the signature of a macOS binary that does not match is detected', () => {
    const signed = prebuilt('darwin-arm64')
    expect(signatureProblem(signed)).toBeUndefined()
    const changed = Buffer.from(signed)
    changed.writeUInt8(changed.readUInt8(100_000) ^ 1, 100_000)
    expect(signatureProblem(changed)).toMatch(/does not fit 1 of \d+ pages/)
    expect(signatureProblem(prebuilt('darwin-x64'))).toBe('it is not signed')
    expect(signatureProblem(prebuilt('linux-x64'))).toBe('it is not a program for macOS')
  })

  test('only a signature that does not match is removed', () => {
    const signed = prebuilt('darwin-arm64')
    const rest = withoutSignature(signed)
    expect(signatureProblem(rest)).toBe('it is not signed')
    expect(rest.length).toBeLessThan(signed.length)
    // All but the header, which has the load commands.
    const head = 32 + signed.readUInt32LE(20)
    expect(rest.subarray(head).equals(signed.subarray(head, rest.length))).toBe(true)
    expect(rest.readUInt32LE(16)).toBe(signed.readUInt32LE(16) - 1)
    expect(withoutSignature(rest)).toBe(rest)
    expect(() => withoutSignature(Buffer.concat([signed, Buffer.from('more')]))).toThrow(
      'where linkers put it',
    )
  })
})
