import { cpSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { packPackage } from '../../release/package.ts'
import { temporaryFolder } from '../support/app.ts'

const root = join(import.meta.dir, '../..')

/**
 * A copy of an example outside of the repository, with the packages that its installation would fetch.
 * @param packages those besides otpost, which is the file that `bun run build:package` builds
 */
export async function copyOf(example: string, packages: readonly string[] = []) {
  const folder = temporaryFolder()
  const copy = join(folder.path, example)
  const modules = join(copy, 'node_modules')
  cpSync(join(root, 'examples', example), copy, { recursive: true })
  mkdirSync(join(modules, 'otpost'), { recursive: true })
  const packed = join(copy, 'otpost.tgz')
  await packPackage(join(folder.path, 'npm'), packed)
  const unpack = Bun.spawn(['tar', 'xzf', packed, '--strip-components=1', '-C', join(modules, 'otpost')])
  if ((await unpack.exited) !== 0) throw new Error('the package can not be unpacked')
  for (const name of packages) symlinkSync(join(root, 'node_modules', name), join(modules, name))
  return { path: copy, remove: folder.remove }
}
