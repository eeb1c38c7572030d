import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import packageJson from '../package.json'

// Builds the npm package: the client, its functions for better-auth and its test helpers, as JavaScript with types, without the server.

const root = join(import.meta.dir, '..')

const manifest = {
  name: packageJson.name,
  version: packageJson.version,
  description: 'Client of otpost, a self-hosted service for verification codes and notifications.',
  license: packageJson.license,
  type: 'module',
  exports: {
    './client': { types: './client.d.ts', default: './client.js' },
    './better-auth': { types: './better-auth.d.ts', default: './better-auth.js' },
    './testing': { types: './testing.d.ts', default: './testing.js' },
  },
  files: ['*.js', '*.d.ts'],
  sideEffects: false,
  // Of `otpost/better-auth` alone.
  peerDependencies: { 'better-auth': '^1.7.8' },
  peerDependenciesMeta: { 'better-auth': { optional: true } },
  // From 20.19, `require` loads ES modules.
  engines: { node: '>=20.19' },
}

/** Empties the folder first. Throws with the compiler's errors. */
export async function assemblePackage(folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const compiler = Bun.spawn(
    [
      process.execPath,
      join(root, 'node_modules/typescript/bin/tsc'),
      ...['--project', join(root, 'client/tsconfig.package.json')],
      ...['--outDir', folder],
    ],
    { cwd: root, stdout: 'pipe', stderr: 'inherit' },
  )
  const complaints = await new Response(compiler.stdout).text()
  if ((await compiler.exited) !== 0) throw new Error(`the client does not compile:\n${complaints}`)
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.d.ts'))) {
    const path = join(folder, file)
    // The compiler renames imports only in the JavaScript.
    writeFileSync(path, readFileSync(path, 'utf8').replace(/(from '\.\/[\w-]+)\.ts'/g, "$1.js'"))
  }
  copyFileSync(join(root, 'client/README.md'), join(folder, 'README.md'))
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
}

/** The package as one file, which an application names in its package.json as `file:otpost.tgz`. */
export async function packPackage(folder: string, file: string): Promise<void> {
  await assemblePackage(folder)
  const packer = Bun.spawn([process.execPath, 'pm', 'pack', '--quiet', '--filename', file], {
    cwd: folder,
    stdout: 'ignore',
    stderr: 'inherit',
  })
  if ((await packer.exited) !== 0) throw new Error('the package cannot be packed')
}

if (import.meta.main) {
  await packPackage(join(root, 'dist/npm'), join(root, 'dist/otpost.tgz'))
  process.stdout.write('dist/npm\ndist/otpost.tgz\n')
}
