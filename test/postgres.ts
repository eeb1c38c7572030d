import { join } from 'node:path'
import { testFlags } from './support/flags.ts'
import { sharedSettings, startPostgres, withoutPostgres } from './support/postgres.ts'

// Runs the tests that are for both stores on PostgreSQL; with --all, every test on SQLite before. All share one server:
// that of TEST_POSTGRES_URL, or one of this process. What follows goes to `bun test`, such as names of files.

const root = join(import.meta.dir, '..')

/** What runs on SQLite alone though it asks for a database as those for both stores do, and why. */
const forSqlite: Readonly<Record<string, string>> = {
  'test/care/backup.test.ts': 'a backup is a copy of a file; PostgreSQL has its own',
  'test/care/doctor.test.ts': 'its findings are about files',
  'test/care/restore.test.ts': 'puts files in the place of files',
  'test/deploy/monitoring.test.ts': 'alerts and dashboard look at the file, its log and its commits too',
  'test/move.test.ts': 'goes from the one store to the other, wherever it runs',
}

/** The modules of the tests that a module names, itself included, with their text. */
async function reachedFrom(file: string): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>()
  const reached = new Set([file])
  // What is added meanwhile is visited too.
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

/** Who offers a database on the store under test; that a test gets it from there makes it one for both stores. */
const givers = ['app.ts', 'database.ts', 'rows.ts'].map((name) => join(import.meta.dir, 'support', name))
const gets = /\b(?:createTestApp|createBrokenApp|openTestDatabase|newTestDatabase)\(/

async function isForBothStores(file: string): Promise<boolean> {
  const reached = await reachedFrom(join(root, file))
  return [...reached].some(([path, text]) => !givers.includes(path) && gets.test(text))
}

async function filesForBothStores(): Promise<string[]> {
  const files = Array.from(new Bun.Glob('test/**/*.test.{ts,tsx}').scanSync(root)).filter(
    (path) => !path.includes('node_modules'),
  )
  const both: string[] = []
  for (const file of files.sort()) if (await isForBothStores(file)) both.push(file)
  if (both.length === 0) throw new Error('no test asks for a database: support/database.ts has moved')
  const unknown = Object.keys(forSqlite).filter((file) => !both.includes(file))
  if (unknown.length > 0) throw new Error(`not among the tests for both stores: ${unknown.join(', ')}`)
  return both.filter((file) => !Object.hasOwn(forSqlite, file))
}

/** Resolves to the exit code of a run of the tests, which ends with this process. */
async function run(args: readonly string[], env: Readonly<Record<string, string>>): Promise<number> {
  const { TEST_STORE: _, ...own } = process.env
  const tests = Bun.spawn([process.execPath, 'test', ...testFlags, ...args], {
    cwd: root,
    env: { ...own, ...env },
    stdio: ['inherit', 'inherit', 'inherit'],
  })
  const end = () => tests.kill()
  process.once('SIGTERM', end)
  const code = await tests.exited
  process.off('SIGTERM', end)
  return code
}

const [first, ...others] = process.argv.slice(2)
const [withAll, given] = first === '--all' ? [true, others] : [false, process.argv.slice(2)]

async function main(): Promise<number> {
  if (withoutPostgres) console.warn(withoutPostgres)
  const { TEST_POSTGRES_URL: url } = process.env
  await using server = url || withoutPostgres ? undefined : await startPostgres(sharedSettings)
  const env: Record<string, string> = server ? { TEST_POSTGRES_URL: server.url } : {}
  if (withAll) {
    const code = await run(given, env)
    if (code !== 0) return code
  }
  if (withoutPostgres) return 0
  const files = (await filesForBothStores()).filter(
    (file) => given.length === 0 || given.some((part) => file.includes(part)),
  )
  const flags = given.filter((part) => part.startsWith('-'))
  // Awaited here: the server ends with this function.
  return await run([...flags, ...files.map((file) => `./${file}`)], { ...env, TEST_STORE: 'postgres' })
}

process.exitCode = await main()
