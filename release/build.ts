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

// Compiles the program to one file: Bun, code, threads, migrations, browser files and SQLite.

const root = join(import.meta.dir, '..')

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

/** @throws for a name of no target */
export function targetsOf(names: readonly string[]): readonly TargetName[] {
  const all = Object.keys(targets) as TargetName[]
  const unknown = names.filter((name) => !Object.hasOwn(targets, name))
  if (unknown.length === 0) return all.filter((name) => names.includes(name))
  throw new Error(`there is no target ${unknown.join(', ')}: choose among ${all.join(', ')}`)
}

/** `dist/otpost` is the binary for this machine. */
export function binaryOf(name: TargetName | 'host'): string {
  const isWindows = name === 'windows-x64' || (name === 'host' && process.platform === 'win32')
  return join(root, 'dist', `otpost${name === 'host' ? '' : `-${name}`}${isWindows ? '.exe' : ''}`)
}

/** better-sqlite3 looks for its machine's file at run time; a binary contains only its target's. */
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

async function build(name: TargetName | 'host', commit: string): Promise<string> {
  const { sqlite, bun } = name === 'host' ? { sqlite: hostPrebuilt(), bun: undefined } : targets[name]
  const finished = binaryOf(name)
  // A rename replaces the old binary when the new one is complete: a server or another build may use it.
  const folder = mkdtempSync(join(root, 'dist', '.build-'))
  const outfile = join(folder, basename(finished))
  try {
    await bundle(outfile, sqlite, bun, commit)
    // Bun leaves its own signature, which no longer matches. It signs programs for arm64 again.
    if (name === 'macos-x64') writeFileSync(outfile, withoutSignature(readFileSync(outfile)))
    renameSync(outfile, finished)
  } finally {
    rmSync(folder, { recursive: true })
  }
  return finished
}

/** What the binaries and the JavaScript of the npm package have in common. */
function bundled(commit: string) {
  const { DOCS_URL: docsUrl } = process.env
  return {
    entrypoints: ['src/main.ts', ...threads].map((path) => join(root, path)),
    root,
    // Threads are found by file name beside their module, and all modules are in one folder.
    naming: { entry: '[name].[ext]' },
    target: 'bun',
    // Not minified: Elysia reads the source of its handlers.
    format: 'esm',
    minify: false,
    // Threads and rarely used parts load only the code that they need.
    splitting: true,
    define: {
      OTPOST_COMMIT: JSON.stringify(commit),
      // Where the site of `bun run docs:site` will be, such as https://otpost.example/docs. Messages name its pages.
      DOCS_URL: docsUrl ? JSON.stringify(docsUrl.replace(/\/$/, '')) : 'undefined',
      'process.env.NODE_ENV': '"production"',
      // pino uses it for transports; it would be the folder of the build machine.
      __dirname: '"/"',
    },
  } satisfies Bun.BuildConfig
}

/** The program as JavaScript for Bun, without better-sqlite3. */
export async function buildModules(outdir: string, commit = commitOf(root)): Promise<void> {
  await Bun.build({ ...bundled(commit), outdir, external: ['better-sqlite3'] })
}

async function bundle(
  outfile: string,
  sqlite: string,
  bun: Bun.Build.CompileTarget | undefined,
  commit: string,
): Promise<void> {
  await Bun.build({
    ...bundled(commit),
    // Bytecode halves the start-up time.
    bytecode: true,
    // Stack traces in the log name the lines of the source.
    sourcemap: 'linked',
    plugins: [sqliteOf(sqlite)],
    compile: {
      ...(bun ? { target: bun } : {}),
      outfile,
      // Files in the working directory must not change settings or code.
      autoloadDotenv: false,
      autoloadBunfig: false,
      autoloadTsconfig: false,
      autoloadPackageJson: false,
    },
  })
}

export const threads = [
  'src/adapters/sqlite/checkpointer.ts',
  'src/adapters/sqlite/reader-main.ts',
  'src/adapters/sqlite/syncer.ts',
  'src/doctor/thread-main.ts',
] as const

function hostPrebuilt(): string {
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } }
  const isMusl = process.platform === 'linux' && header.glibcVersionRuntime === undefined
  return `${process.platform}${isMusl ? 'musl' : ''}-${process.arch}`
}

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
  const chosen = targetsOf(values.all ? Object.keys(targets) : values.target)
  // Without the history, as in a container, the environment has the commit.
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
    const all: readonly Error[] = error instanceof AggregateError ? error.errors : [error]
    process.stderr.write(`${all.map((one) => `build: ${one.message ?? String(one)}`).join('\n')}\n`)
    process.exit(1)
  })
}
