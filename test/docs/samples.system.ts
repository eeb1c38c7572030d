import { afterAll, describe, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import packageJson from '../../package.json'
import { parsePrices } from '../../src/adapters/prices/csv.ts'
import { shippedFiles } from '../../src/adapters/sms/file/shipped/index.ts'
import { providerNames } from '../../src/adapters/sms/index.ts'
import { sandboxSettings } from '../../src/commands/sandbox.ts'
import { temporaryFolder } from '../support/app.ts'
import { pages, problemsOf, root, type Sample, samplesIn } from './pages.ts'
import { settingNames } from './program.ts'

const folder = temporaryFolder()
afterAll(() => folder.remove())

const samples = pages.flatMap((page) => page.samples)
/** The parser's error. */
function thrownBy(parse: () => unknown): string | undefined {
  try {
    parse()
    return undefined
  } catch (error) {
    return String(error)
  }
}

/** The check of each language. A language without an entry fails a test below. */
const checks: Readonly<Record<string, (code: string) => string | undefined>> = {
  // Program output and text drawings.
  '': () => undefined,
  text: () => undefined,
  json: (code) => thrownBy(() => JSON.parse(code)),
  yaml: (code) => thrownBy(() => Bun.YAML.parse(code)),
  // Price files.
  csv: (code) => parsePrices(code, providerNames).problems[0],
  toml: (code) => thrownBy(() => Bun.TOML.parse(code)),
  ini: (code) => code.split('\n').find((line) => !/^(?:\[[\w.-]+\]|[#;].*|[\w.-]+\s*=.*|\s*)$/.test(line)),
  js: (code) => thrownBy(() => new Bun.Transpiler({ loader: 'js' }).scan(code)),
  // Checked by the compiler, below.
  ts: () => undefined,
  // Checked by PostgreSQL, in postgres.system.ts.
  sql: () => undefined,
  sh: (code) => refusedBy('sh', code),
  bash: (code) => refusedBy('bash', code),
}

function refusedBy(shell: string, code: string): string | undefined {
  const { exitCode, stderr } = Bun.spawnSync([shell, '-n'], { stdin: Buffer.from(code) })
  return exitCode === 0 ? undefined : stderr.toString().trim()
}

test.each(Object.keys(checks).filter((language) => samples.some((sample) => sample.language === language)))(
  'samples can be parsed: "%s"',
  (language) => {
    expect(problemsOf(samplesIn(language), ({ code }) => checks[language]?.(code))).toEqual([])
  },
)

test('every sample is in a language with a check', () => {
  const known = ({ language }: Sample) => Object.hasOwn(checks, language)
  expect(samples.filter((sample) => !known(sample)).map(({ at, language }) => `${at}: ${language}`)).toEqual(
    [],
  )
})

test('TypeScript samples compile against the package as users import it', async () => {
  // A sample with imports begins a module. The samples after it on the page continue that module.
  const modules: { readonly at: string; text: string }[] = []
  for (const { at, code } of samplesIn('ts')) {
    const last = modules.at(-1)
    const isOfPage = last !== undefined && at.split(':')[0] === last.at.split(':')[0]
    if (isOfPage && !/^import /m.test(code)) last.text += `// ${at}\n${code}`
    else modules.push({ at, text: `// ${at}\n${code}\nexport {}\n` })
  }
  expect(modules.length).toBeGreaterThan(1)
  const place = join(folder.path, 'samples')
  mkdirSync(join(place, 'node_modules'), { recursive: true })
  for (const name of readdirSync(join(root, 'node_modules')).filter((each) => !each.startsWith('.'))) {
    symlinkSync(join(root, 'node_modules', name), join(place, 'node_modules', name))
  }
  symlinkSync(root, join(place, 'node_modules', packageJson.name))
  for (const [index, { text }] of modules.entries()) writeFileSync(join(place, `module-${index}.ts`), text)
  writeFileSync(
    join(place, 'tsconfig.json'),
    JSON.stringify({
      extends: join(root, 'tsconfig.json'),
      compilerOptions: { lib: ['esnext', 'dom'], types: ['node'], noUnusedLocals: false },
      include: ['*.ts'],
      exclude: [],
    }),
  )
  const { exitCode, stdout } = Bun.spawnSync([process.execPath, 'x', 'tsc', '--project', place], {
    cwd: root,
  })
  expect({ exitCode, said: stdout.toString() }).toEqual({ exitCode: 0, said: '' })
})

describe('settings', () => {
  const known = settingNames()
  /** Other variables that a page may set: of the sandbox, of other programs here, of provider files, of identity systems, of Bun, Kannel and the system. */
  const others: ReadonlySet<string> = new Set([
    ...Object.keys(sandboxSettings),
    ...variablesOf('examples/*', 'client', 'release', 'bench', 'bench/soak', 'test', 'test/*'),
    ...shippedFiles.flatMap((file) => Object.keys(file.settings)),
    ...['ACME_SMS_KEY', 'ACME_SMS_FROM'],
    ...[
      'SMS_API_URL',
      'SMS_API_AUTH_USERNAME',
      'SMS_API_AUTH_PASSWORD',
      'TWILIO_DSN',
      'GOTRUE_HOOK_SEND_SMS_ENABLED',
    ],
    ...['BUN_BE_BUN', 'BUN_OPTIONS', 'START_SMSBOX', 'TMPDIR'],
  ])

  /** Names that a text assigns. */
  const namesIn = (text: string): string[] =>
    [...text.matchAll(/(?<![\w$/?&"'.-])([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|PORT|HOST)=/g)].map(
      ([, name = '']) => name,
    )

  test('that pages set are known to the program', () => {
    const unknown = pages.flatMap(({ path, spans, samples: own }) => {
      const scripts = own.filter(({ language }) => ['sh', 'bash', 'ini', 'yaml'].includes(language))
      const text = scripts.map(({ code }) => code).join('\n')
      // A variable that a script reads belongs to the script.
      const isOwn = (name: string) => new RegExp(`\\$\\{?${name}\\b`).test(text)
      return [...spans.flatMap(namesIn), ...namesIn(text)]
        .filter((name) => !known.has(name) && !others.has(name) && !isOwn(name))
        .map((name) => `${path}: ${name}`)
    })
    expect([...new Set(unknown)]).toEqual([])
  })
})

/** The variables that programs in these folders name. */
function variablesOf(...folders: readonly string[]): readonly string[] {
  return folders
    .flatMap((folder) => [...new Bun.Glob(`${folder}/*.{ts,mjs,sh}`).scanSync({ cwd: root })])
    .flatMap((path) => [
      ...readFileSync(join(root, path), 'utf8').matchAll(/(?:\benv\.|'|\$\{?)([A-Z][A-Z0-9_]+)/g),
    ])
    .map(([, name = '']) => name)
}
