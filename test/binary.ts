import { join } from 'node:path'

// Runs every test that starts the program as a process, with the compiled binary in its place.

const root = join(import.meta.dir, '..')
const program = join(import.meta.dir, 'support/program.ts')
const transpilers = { ts: new Bun.Transpiler({ loader: 'ts' }), tsx: new Bun.Transpiler({ loader: 'tsx' }) }
const reached = new Map<string, Promise<boolean>>()

/** Whether a module leads to the one that starts the program. */
function startsProgram(file: string): Promise<boolean> {
  const known = reached.get(file)
  if (known) return known
  const answer = (async () => {
    if (file === program) return true
    const { [file.endsWith('.tsx') ? 'tsx' : 'ts']: transpiler } = transpilers
    const imports = transpiler.scanImports(await Bun.file(file).text())
    const own = imports.filter(({ path }) => path.startsWith('.')).map(({ path }) => join(file, '..', path))
    const found = await Promise.all(own.filter((path) => /\/test\/.*\.tsx?$/.test(path)).map(startsProgram))
    return found.includes(true)
  })()
  reached.set(file, answer)
  return answer
}

const files = Array.from(new Bun.Glob('test/**/*.test.{ts,tsx}').scanSync(root)).filter(
  (path) => !path.includes('node_modules'),
)
const blackBox: string[] = []
for (const file of files.sort()) if (await startsProgram(join(root, file))) blackBox.push(`./${file}`)
if (blackBox.length === 0) throw new Error('no test starts the program: support/program.ts has moved')

const { exited } = Bun.spawn(
  [process.execPath, 'test', '--parallel', '--timeout', '30000', ...blackBox, ...process.argv.slice(2)],
  {
    cwd: root,
    env: { ...process.env, OTPOST_BINARY: process.env.OTPOST_BINARY || 'dist/otpost' },
    stdio: ['inherit', 'inherit', 'inherit'],
  },
)
process.exit(await exited)
