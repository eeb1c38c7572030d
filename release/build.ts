import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { commitOf } from '../src/version.ts'
import { withoutSignature } from './macho.ts'

// Makes the program one file: Bun, the code, its threads, the migrations, what the browser gets and SQLite.

const root = join(import.meta.dir, '..')

/** Where the program runs: the Bun to put in, and better-sqlite3's entry with the SQLite built for there. */
export const targets = {
  'linux-x64': { bun: 'bun-linux-x64-baseline', sqlite: 'linux-x64' },
  'linux-arm64': { bun: 'bun-linux-arm64', sqlite: 'linux-arm64' },
  'linux-x64-musl': { bun: 'bun-linux-x64-baseline-musl', sqlite: 'linuxmusl-x64' },
  'linux-arm64-musl': { bun: 'bun-linux-arm64-musl', sqlite: 'linuxmusl-arm64' },
  'macos-x64': { bun: 'bun-darwin-x64-baseline', sqlite: 'darwin-x64' },
  'macos-arm64': { bun: 'bun-darwin-arm64', sqlite: 'darwin-arm64' },
  'windows-x64': { bun: 'bun-windows-x64-baseline', sqlite: 'win32-x64' },
} as const satisfies Record<string, { bun: Bun.Build.CompileTarget; sqlite: string }>

export type TargetName = keyof typeof targets

/** Where each binary lies: `dist/otpost` is the one for the machine that builds. */
export function binaryOf(name: TargetName | 'host'): string {
  const isWindows = name === 'windows-x64' || (name === 'host' && process.platform === 'win32')
  return join(root, 'dist', `otpost${name === 'host' ? '' : `-${name}`}${isWindows ? '.exe' : ''}`)
}

/** better-sqlite3 asks for the file of its machine when it runs; a binary has that of its target alone. */
function sqliteOf(prebuilt: string): Bun.BunPlugin {
  return {
    name: 'better-sqlite3',
    setup: ({ onResolve }) => {
      onResolve({ filter: /^better-sqlite3$/ }, () => ({
        path: join(root, 'node_modules/better-sqlite3/lib', `${prebuilt}.js`),
      }))
    },
  }
}

/** Builds one binary; returns its path and throws with what the bundler has against it. */
async function build(name: TargetName | 'host', commit: string): Promise<string> {
  const { sqlite, bun } = name === 'host' ? { sqlite: hostPrebuilt(), bun: undefined } : targets[name]
  const finished = binaryOf(name)
  // A server may be running the old one, and another build may be under way: the new one takes its place when it is whole.
  const folder = mkdtempSync(join(root, 'dist', '.build-'))
  const outfile = join(folder, basename(finished))
  try {
    await bundle(outfile, sqlite, bun, commit)
    // Bun leaves its own signature in place, which does not fit any more. It signs a program for arm64 anew.
    if (name === 'macos-x64') writeFileSync(outfile, withoutSignature(readFileSync(outfile)))
    renameSync(outfile, finished)
  } finally {
    rmSync(folder, { recursive: true })
  }
  return finished
}

async function bundle(
  outfile: string,
  sqlite: string,
  bun: Bun.Build.CompileTarget | undefined,
  commit: string,
): Promise<void> {
  await Bun.build({
    entrypoints: ['src/main.ts', ...threads].map((path) => join(root, path)),
    root,
    // A thread is asked for by its name beside the module that starts it, and all modules are in one folder now.
    naming: { entry: '[name].[ext]' },
    target: 'bun',
    // Compiled ahead: it starts in half the time. Not minified: Elysia reads the source of its handlers.
    format: 'esm',
    bytecode: true,
    minify: false,
    // So that a stack trace in the log names the lines of the source.
    sourcemap: 'linked',
    define: {
      OTPOST_COMMIT: JSON.stringify(commit),
      'process.env.NODE_ENV': '"production"',
      // pino has it for its transports, and it would be the folder of the machine that builds.
      __dirname: '"/"',
    },
    plugins: [sqliteOf(sqlite)],
    compile: {
      ...(bun ? { target: bun } : {}),
      outfile,
      // Whoever can write into the folder it is started in must not choose its settings, or what it runs.
      autoloadDotenv: false,
      autoloadBunfig: false,
      autoloadTsconfig: false,
      autoloadPackageJson: false,
    },
  })
}

/** The files that run as threads of their own. */
export const threads = [
  'src/adapters/sqlite/thread-main.ts',
  'src/adapters/sqlite/checkpointer.ts',
  'src/adapters/sqlite/syncer.ts',
] as const

function hostPrebuilt(): string {
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } }
  const isMusl = process.platform === 'linux' && header.glibcVersionRuntime === undefined
  return `${process.platform}${isMusl ? 'musl' : ''}-${process.arch}`
}

/** Folders of builds that were killed. */
function clearAbandoned(): void {
  const hourAgo = Date.now() - 3_600_000
  for (const name of readdirSync(join(root, 'dist')).filter((name) => name.startsWith('.build-'))) {
    const folder = join(root, 'dist', name)
    if ((statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? hourAgo) < hourAgo)
      rmSync(folder, { recursive: true })
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      all: { type: 'boolean', default: false },
      target: { type: 'string', multiple: true, default: [] },
    },
  })
  const unknown = values.target.filter((name) => !Object.hasOwn(targets, name))
  if (unknown.length > 0) {
    throw new Error(
      `there is no target ${unknown.join(', ')}: choose among ${Object.keys(targets).join(', ')}`,
    )
  }
  const chosen = (values.all ? Object.keys(targets) : values.target) as TargetName[]
  // Without the history, as in a container, the commit is told by the environment.
  const commit = process.env.OTPOST_COMMIT || commitOf(root)
  mkdirSync(join(root, 'dist'), { recursive: true })
  clearAbandoned()
  for (const name of chosen.length > 0 ? chosen : (['host'] as const)) {
    const path = await build(name, commit)
    process.stdout.write(`${path.slice(root.length + 1)}  ${(Bun.file(path).size / 1e6).toFixed(0)} MB\n`)
  }
}

if (import.meta.main) {
  await main().catch((error: Error) => {
    // The bundler says several things at once.
    const all: readonly Error[] = error instanceof AggregateError ? error.errors : [error]
    process.stderr.write(`${all.map((one) => `build: ${one.message ?? String(one)}`).join('\n')}\n`)
    process.exit(1)
  })
}
