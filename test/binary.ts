import { join } from 'node:path'
import { testFlags } from './support/flags.ts'

// Runs every test that starts the program as a process, with the compiled binary in its place.

const root = join(import.meta.dir, '..')
const program = join(import.meta.dir, 'support/program.ts')
const transpilers = { ts: new Bun.Transpiler({ loader: 'ts' }), tsx: new Bun.Transpiler({ loader: 'tsx' }) }

/** The modules of the tests that a module names, itself included; they may name each other in a circle. */
async function reachedFrom(file: string): Promise<ReadonlySet<string>> {
  const reached = new Set([file])
  // What is added meanwhile is visited too.
  for (const path of reached) {
    const imports = transpilers[path.endsWith('.tsx') ? 'tsx' : 'ts'].scanImports(await Bun.file(path).text())
    for (const imported of imports) {
      const own = join(path, '..', imported.path)
      if (imported.path.startsWith('.') && /\/test\/.*\.tsx?$/.test(own)) reached.add(own)
    }
  }
  return reached
}

const files = Array.from(new Bun.Glob('test/**/*.test.{ts,tsx}').scanSync(root)).filter(
  (path) => !path.includes('node_modules'),
)
const blackBox: string[] = []
for (const file of files.sort()) {
  if ((await reachedFrom(join(root, file))).has(program)) blackBox.push(`./${file}`)
}
if (blackBox.length === 0) throw new Error('no test starts the program: support/program.ts has moved')

const { exited } = Bun.spawn(
  [process.execPath, 'test', ...testFlags, ...blackBox, ...process.argv.slice(2)],
  {
    cwd: root,
    env: { ...process.env, OTPOST_BINARY: process.env.OTPOST_BINARY || 'dist/otpost' },
    stdio: ['inherit', 'inherit', 'inherit'],
  },
)
process.exit(await exited)
