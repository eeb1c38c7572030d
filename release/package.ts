import { chmodSync, copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import packageJson from '../package.json'
import { buildModules, type TargetName, targets } from './build.ts'
import { run } from './run.ts'

// Builds the npm packages. `otpost` has the client, its functions for better-auth and its test helpers, as JavaScript with types, and the
// command `otpost`. The binary for each platform is a package that `otpost` names as an optional dependency.

const root = join(import.meta.dir, '..')
const { name, version, license } = packageJson

const manifest = {
  name,
  version,
  description: 'Client and server of otpost, a self-hosted service for verification codes and notifications.',
  license,
  type: 'module',
  bin: { otpost: 'bin/otpost.js' },
  exports: {
    './client': { types: './client.d.ts', default: './client.js' },
    './better-auth': { types: './better-auth.d.ts', default: './better-auth.js' },
    './manage': { types: './manage.d.ts', default: './manage.js' },
    './testing': { types: './testing.d.ts', default: './testing.js' },
  },
  files: ['*.js', '*.d.ts', 'bin', 'server'],
  sideEffects: false,
  peerDependencies: {
    // Of `otpost/better-auth` alone.
    'better-auth': '^1.7.8',
    // Of the command `otpost`, where it runs with Bun.
    'better-sqlite3': packageJson.dependencies['better-sqlite3'],
  },
  peerDependenciesMeta: { 'better-auth': { optional: true }, 'better-sqlite3': { optional: true } },
  // From 20.19, `require` loads ES modules.
  engines: { node: '>=20.19' },
}

/**
 * Empties the folder first. Throws with the compiler's errors.
 * @param optionalDependencies packages with binaries: a release has them, a checkout does not
 */
export async function assemblePackage(
  folder: string,
  optionalDependencies: Readonly<Record<string, string>> = {},
): Promise<void> {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(join(folder, 'bin'), { recursive: true })
  const compiler = [process.execPath, join(root, 'node_modules/typescript/bin/tsc')]
  run([...compiler, '--project', join(root, 'client/tsconfig.package.json'), '--outDir', folder])
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.d.ts'))) {
    const path = join(folder, file)
    // The compiler renames imports only in the JavaScript.
    writeFileSync(path, readFileSync(path, 'utf8').replace(/(from '\.\/[\w-]+)\.ts'/g, "$1.js'"))
  }
  copyFileSync(join(root, 'client/README.md'), join(folder, 'README.md'))
  copyFileSync(join(root, 'release/npm/otpost.js'), join(folder, 'bin/otpost.js'))
  await buildModules(join(folder, 'server'))
  writeManifest(folder, { ...manifest, optionalDependencies })
}

/** The package of one binary, such as `@otpost/linux-x64`. Empties the folder first. */
function assembleBinary(target: TargetName, binary: string, folder: string): void {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const [system = '', cpu] = targets[target].sqlite.split('-')
  const os = system.replace('musl', '')
  const file = target === 'windows-x64' ? 'otpost.exe' : 'otpost'
  copyFileSync(binary, join(folder, file))
  chmodSync(join(folder, file), 0o755)
  const libc = os === 'linux' ? { libc: [system === os ? 'glibc' : 'musl'] } : {}
  const description = `The binary of otpost for ${target}.`
  const machine = { os: [os], cpu: [cpu], ...libc, preferUnplugged: true }
  writeManifest(folder, {
    ...{ name: packageOf(target), version, description, license, ...machine, files: [file] },
  })
}

function packageOf(target: TargetName): string {
  return `@${name}/${target}`
}

function writeManifest(folder: string, content: object): void {
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(content, null, 2)}\n`)
  copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'))
}

/** All packages of a release, as files that `npm publish` takes. */
export async function packRelease(
  binaries: Readonly<Partial<Record<TargetName, string>>>,
  folder: string,
): Promise<void> {
  const platforms = Object.entries(binaries) as [TargetName, string][]
  const place = join(folder, '.npm')
  for (const [target, binary] of platforms) {
    assembleBinary(target, binary, place)
    pack(place, join(folder, `otpost-npm-${target}.tgz`))
  }
  await assemblePackage(place, Object.fromEntries(platforms.map(([target]) => [packageOf(target), version])))
  pack(place, join(folder, 'otpost-npm.tgz'))
  rmSync(place, { recursive: true })
}

/** The package as one file, which an application names in its package.json as `file:otpost.tgz`. */
export async function packPackage(folder: string, file: string): Promise<void> {
  await assemblePackage(folder)
  pack(folder, file)
}

function pack(folder: string, file: string): void {
  run([process.execPath, 'pm', 'pack', '--quiet', '--filename', file], folder)
}

if (import.meta.main) {
  await packPackage(join(root, 'dist/npm'), join(root, 'dist/otpost.tgz'))
  process.stdout.write('dist/npm\ndist/otpost.tgz\n')
}
