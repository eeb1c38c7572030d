import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { browserPath } from './support/browser.ts'
import {
  claimDatabase,
  releaseDatabase,
  sharedSettings,
  startPostgres,
  withoutOwnPostgres,
} from './support/postgres.ts'

// The test runner: `bun test/run.ts fast`, `bun test/run.ts all`, or parts of the system lane by name, such as
// `bun test/run.ts deploy docs`. Arguments that start with `-` go to `bun test`. Files of the system lane are named
// *.system.ts. The part postgres also runs every test that asks for a database again, on PostgreSQL. Alone and with
// DATABASE_URL, it runs what depends on the database engine, in that database only.

const root = join(import.meta.dir, '..')

/** The parts of the system lane, by the files in them; what is in none of them is of the last. */
const parts: Readonly<Record<string, RegExp>> = {
  browser: /^test\/(?:browser|examples)\//,
  crashes: /^test\/(?:durability|fuzz|model)\/|^test\/(?:crash|faults|ladder|stop|queue)\./,
  gateways: /^test\/adapters\/|^test\/(?:kannel|exim|providers)\./,
  postgres: /^test\/(?:postgres|store)\/|^test\/move\./,
  api: /^test\/generators\//,
  deploy: /^test\/deploy\//,
  docs: /^test\/docs\//,
  binary: /^test\/(?:release|client)\/|^test\/compiled\./,
  program: /./,
}

/** What runs on SQLite alone though it asks for a database as the tests for both stores do, and why. */
const forSqlite: Readonly<Record<string, string>> = {
  'test/browser/': 'a page is the same on both stores; test/http has the console on both',
  'test/http/actions.test.ts':
    'its commands read the clock of the database; the other tests of test/http are about each change',
  'test/care/backup.system.ts': 'a backup is a copy of a file; PostgreSQL has its own',
  'test/care/doctor.system.ts': 'its findings are about files',
  'test/care/restore.system.ts': 'puts files in the place of files',
  'test/deploy/monitoring.system.ts': 'alerts and dashboard look at the file, its log and its commits too',
  'test/move.system.ts': 'moves from one store to the other, on either',
}

/** What depends on the database engine, in files that need one database at a time. */
const onEngine =
  /^test\/(?:store|model|postgres)\/|^test\/contract\.|^test\/http\/(?:budgets|callbacks|failover|idempotency)/

/** Programs that some tests need; the tests are skipped without them. */
const programs: Readonly<Record<string, boolean>> = {
  'Chromium (apt-get install chromium)': browserPath !== undefined,
  ...Object.fromEntries(
    Object.entries({
      bearerbox: 'kannel kannel-extras libnet-smpp-perl',
      exim4: 'exim4-daemon-light python3-dkim openssl',
      nginx: 'nginx',
      caddy: 'caddy',
      pgbouncer: 'pgbouncer',
      bwrap: 'bubblewrap',
      'systemd-nspawn': 'systemd-container',
      mmdebstrap: 'mmdebstrap',
      pebble: 'pebble openssl',
      rpmbuild: 'rpm',
      cc: 'gcc libc6-dev',
      curl: 'curl',
      git: 'git',
      node: 'nodejs npm',
      python3: 'python3',
      php: 'php-cli php-curl',
      jsonnet: 'jsonnet',
      go: 'golang-go',
      java: 'default-jdk-headless',
      jq: 'jq',
    }).map(([name, packages]) => [
      `${name} (apt-get install ${packages})`,
      Bun.which(name, { PATH: `${process.env.PATH}:/usr/sbin:/sbin` }) !== null,
    ]),
  ),
  'Symfony Notifier (apt-get install php-symfony-twilio-notifier php-symfony-http-client)': existsSync(
    '/usr/share/php/Symfony/Component/Notifier/Bridge/Twilio/autoload.php',
  ),
  'libraries for proofs (apt-get install golang-github-golang-jwt-jwt-dev python3-jwt python3-cryptography python3-jwcrypto libcrypt-jwt-perl)':
    [
      'gocode/src/github.com/golang-jwt/jwt',
      'doc/python3-jwt',
      'doc/python3-cryptography',
      'doc/python3-jwcrypto',
      'perl5/Crypt/JWT.pm',
    ].every((path) => existsSync(`/usr/share/${path}`)),
  'firebase/php-jwt (Debian 12 has none; PHP_JWT)': process.env.PHP_JWT !== undefined,
  'jose4j (Debian 12 has none; JOSE4J_CLASS_PATH)': process.env.JOSE4J_CLASS_PATH !== undefined,
  '.NET 10 (Debian has none)': Bun.which('dotnet') !== null,
  [`PostgreSQL (${withoutOwnPostgres})`]: !withoutOwnPostgres,
}

interface Totals {
  passed: number
  failed: number
  skipped: number
}

const args = process.argv.slice(2)
const flags = args.filter((arg) => arg.startsWith('-'))
const names = args.filter((arg) => !arg.startsWith('-'))
const chosen = names.includes('all') ? Object.keys(parts) : names.filter((name) => name !== 'fast')
const totals: Totals = { passed: 0, failed: 0, skipped: 0 }
const leftOut = new Map<string, number>()
let hasFailed = false

/** The modules of the tests that a file imports, itself included, with their text. */
async function modulesOf(file: string): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>()
  const reached = new Set([join(root, file)])
  // A set visits what is added meanwhile too.
  for (const path of reached) {
    const text = await Bun.file(path).text()
    texts.set(path, text)
    const transpiler = new Bun.Transpiler({ loader: path.endsWith('.tsx') ? 'tsx' : 'ts' })
    for (const imported of transpiler.scanImports(text)) {
      const own = join(path, '..', imported.path)
      if (imported.path.startsWith('.') && /\/test\/.*\.tsx?$/.test(own)) reached.add(own)
    }
  }
  return texts
}

function filesNamed(suffix: 'test' | 'system'): string[] {
  const found = Array.from(new Bun.Glob(`test/**/*.${suffix}.{ts,tsx}`).scanSync(root))
  return found.filter((path) => !path.includes('node_modules')).sort()
}

function partOf(file: string): string {
  return Object.entries(parts).find(([, pattern]) => pattern.test(file))?.[0] ?? 'program'
}

/** Tests that take their database from test/support/database.ts, and fast tests with a part on PostgreSQL. */
async function filesOnPostgres(): Promise<string[]> {
  const givers = ['app.ts', 'database.ts', 'rows.ts', 'postgres.ts'].map((name) =>
    join(import.meta.dir, 'support', name),
  )
  const onBoth = /\b(?:createTestApp|createBrokenApp|openTestDatabase|migratedTestDatabase|newTestDatabase)\(/
  const files: string[] = []
  for (const file of [...filesNamed('test'), ...filesNamed('system')]) {
    const modules = [...(await modulesOf(file))]
    const hasPart = modules.some(
      ([path, text]) => !givers.includes(path) && text.includes('withoutSharedPostgres'),
    )
    if (hasPart || modules.some(([path, text]) => !givers.includes(path) && onBoth.test(text)))
      files.push(file)
  }
  const places = Object.keys(forSqlite)
  const unknown = places.filter((place) => !files.some((file) => file.startsWith(place)))
  if (unknown.length > 0) throw new Error(`not among the tests for both stores: ${unknown.join(', ')}`)
  return files.filter((file) => !places.some((place) => file.startsWith(place)))
}

/** Runs a command that ends with this process; resolves to its exit code. */
async function run(command: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<number> {
  const child = Bun.spawn([...command], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['inherit', 'inherit', 'inherit'],
  })
  const end = () => child.kill()
  process.once('SIGTERM', end)
  const code = await child.exited
  process.off('SIGTERM', end)
  return code
}

/** A folder in memory, if there is one with 2 GiB of room: disks sync each commit, which takes half of the time of fast tests. */
const memoryFolder: string | undefined = (() => {
  try {
    const { bavail, bsize } = statfsSync('/dev/shm')
    return bavail * bsize > 2 ** 31 ? '/dev/shm' : undefined
  } catch {
    return undefined
  }
})()

/** Runs these test files, and adds what came of them to the totals. */
async function runTests(
  title: string,
  files: readonly string[],
  env: Readonly<Record<string, string>> = {},
  // Of one file, more servers at once starve each other where there are few cores.
  parallel: readonly string[] = ['--parallel', '--max-concurrency=6'],
) {
  if (files.length === 0) return
  console.log(`\n== ${title}: ${files.length} files`)
  const folder = mkdtempSync(join(tmpdir(), 'otpost-run-'))
  const report = join(folder, 'report.xml')
  const code = await run(
    [
      process.execPath,
      'test',
      ...parallel,
      '--only-failures',
      '--reporter=junit',
      `--reporter-outfile=${report}`,
      ...flags,
      ...files.map((file) => `./${file}`),
    ],
    env,
  )
  hasFailed ||= code !== 0
  const xml = readdirSync(folder).length > 0 ? readFileSync(report, 'utf8') : ''
  rmSync(folder, { recursive: true })
  const [, tests = 0, failed = 0, skipped = 0] =
    /<testsuites [^>]*tests="(\d+)"[^>]*failures="(\d+)" skipped="(\d+)"/.exec(xml)?.map(Number) ?? []
  totals.passed += tests - failed - skipped
  totals.failed += failed
  totals.skipped += skipped
  for (const [, file = ''] of xml.matchAll(/<testcase [^>]*file="([^"]*)"[^>]*>\s*<skipped/g)) {
    const key = `${file} (${title})`
    leftOut.set(key, (leftOut.get(key) ?? 0) + 1)
  }
}

async function runSystemLane(): Promise<void> {
  const unknown = chosen.filter((name) => !Object.hasOwn(parts, name))
  if (unknown.length > 0)
    throw new Error(`no such part: ${unknown}; there are ${Object.keys(parts).join(', ')}`)
  const files = filesNamed('system').filter((file) => chosen.includes(partOf(file)))
  const onPostgres = chosen.includes('postgres') ? await filesOnPostgres() : []

  const install = (folder: string) =>
    run([process.execPath, 'install', '--frozen-lockfile', '--silent', '--cwd', folder])
  if (chosen.includes('api')) await install('test/generators')
  if (chosen.includes('docs')) await install('release/site')
  if (chosen.includes('binary') || chosen.includes('deploy')) await install('test/deploy/tools')
  let { OTPOST_BINARY: binary = '' } = process.env
  if (binary === '') {
    binary = 'dist/otpost'
    if ((await run([process.execPath, 'release/build.ts'])) !== 0) throw new Error('the binary was not built')
  }

  await using server = withoutOwnPostgres ? undefined : await startPostgres(sharedSettings)
  const env = {
    OTPOST_BINARY: binary,
    SIMULATION_RUNS: '2000',
    ...(server ? { TEST_POSTGRES_URL: server.url } : {}),
  }
  await runTests('system tests', files, env)
  if (server) await runTests('on PostgreSQL', onPostgres, { ...env, TEST_STORE: 'postgres' })
  const missing = Object.entries(programs).filter(([, isThere]) => !isThere)
  if (missing.length > 0) console.log(`\nnot installed: ${missing.map(([name]) => name).join(', ')}`)
}

/** Runs what depends on the engine in this database, one test after another. */
async function runOnGiven(url: string): Promise<void> {
  await claimDatabase(url)
  try {
    const own = filesNamed('system').filter((file) => partOf(file) === 'postgres')
    const files = new Set([...own, ...(await filesOnPostgres())])
    const env = { TEST_DATABASE_URL: url, TEST_STORE: 'postgres', DATABASE_URL: '' }
    const oneByOne = ['--isolate', '--max-concurrency=1']
    await runTests(
      'on the given database',
      [...files].filter((file) => onEngine.test(file)),
      env,
      oneByOne,
    )
  } finally {
    await releaseDatabase(url)
  }
}

const { DATABASE_URL: given } = process.env
const start = performance.now()
if (names.includes('fast') || names.includes('all')) {
  const place = mkdtempSync(join(memoryFolder ?? tmpdir(), 'otpost-fast-'))
  await runTests('fast tests', filesNamed('test'), { TMPDIR: place })
  rmSync(place, { recursive: true })
}
if (given?.startsWith('postgres') && chosen.join() === 'postgres') await runOnGiven(given)
else if (chosen.length > 0) await runSystemLane()
if (leftOut.size > 0) {
  console.log(
    '\nleft out, since what they need (such as a server of their own) is not here, or they are about the other store:',
  )
  for (const [file, count] of leftOut) console.log(`  ${file}: ${count}`)
}
const seconds = Math.round((performance.now() - start) / 1000)
console.log(`\n${totals.skipped} skipped, ${seconds} s`)
console.log(`${totals.passed} passed, ${totals.failed} failed`)
process.exitCode = hasFailed || totals.failed > 0 || totals.passed === 0 ? 1 : 0
