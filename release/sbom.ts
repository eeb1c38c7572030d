import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import Driver from 'better-sqlite3'
import packageJson from '../package.json'
import { run } from './run.ts'

// The bill of materials of the binaries, in CycloneDX. npm describes the packages, the bundler selects those in the
// binaries. Bun and the SQLite in better-sqlite3 are added.

const root = join(import.meta.dir, '..')

interface Component {
  readonly 'bom-ref': string
  readonly type: string
  readonly name: string
  readonly version: string
  readonly purl: string
  readonly [property: string]: unknown
}

export interface Bom {
  readonly specVersion: string
  readonly metadata: { readonly component: Component; readonly [property: string]: unknown }
  readonly components: readonly Component[]
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn?: readonly string[] }[]
  readonly [property: string]: unknown
}

async function bundledPackages(): Promise<ReadonlySet<string>> {
  const { metafile } = await Bun.build({
    entrypoints: [join(root, 'src/main.ts')],
    root,
    target: 'bun',
    metafile: true,
  })
  const folders = Object.keys(metafile?.inputs ?? {}).flatMap(
    (path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0] ?? [],
  )
  return new Set(
    [...new Set(folders)].map((folder) => {
      const { name, version } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))
      return `${name}@${version}`
    }),
  )
}

function npmSbom(): Bom {
  return JSON.parse(run(['npm', 'sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'application']))
}

export async function makeSbom(): Promise<Bom> {
  const bundled = await bundledPackages()
  const { metadata, components, dependencies, ...rest } = npmSbom()
  const bun = {
    'bom-ref': `bun@${Bun.version}`,
    type: 'platform',
    name: 'bun',
    version: Bun.version,
    purl: `pkg:github/oven-sh/bun@bun-v${Bun.version}`,
    licenses: [{ license: { id: 'MIT' } }],
    externalReferences: [{ type: 'vcs', url: 'https://github.com/oven-sh/bun' }],
  }
  const sqlite = sqliteComponent()
  const inside = components.filter((component) => bundled.has(component['bom-ref']))
  const missing = [...bundled].filter((name) => !inside.some((component) => component['bom-ref'] === name))
  if (missing.length > 0) throw new Error(`npm sbom does not know ${missing.join(', ')}`)
  const rootRef = `otpost@${packageJson.version}`
  const refs = new Set([rootRef, ...inside.map((component) => component['bom-ref'])])
  return {
    ...rest,
    metadata: {
      ...metadata,
      component: {
        ...metadata.component,
        'bom-ref': rootRef,
        // npm uses the folder's name, which is another package in its registry.
        name: 'otpost',
        purl: `pkg:generic/otpost@${packageJson.version}`,
      },
    },
    components: [...inside, bun, sqlite],
    dependencies: [
      ...dependencies
        .filter(({ ref }) => refs.has(ref))
        .map(({ ref, dependsOn = [] }) => ({
          ref,
          dependsOn: [
            ...dependsOn.filter((each) => refs.has(each)),
            ...(ref === rootRef ? [bun['bom-ref']] : []),
            ...(ref.startsWith('better-sqlite3@') ? [sqlite['bom-ref']] : []),
          ],
        })),
      { ref: bun['bom-ref'], dependsOn: [] },
      { ref: sqlite['bom-ref'], dependsOn: [] },
    ],
  }
}

function sqliteComponent() {
  const driver = new Driver(':memory:')
  const version = String(driver.prepare('SELECT sqlite_version()').pluck().get())
  driver.close()
  return {
    'bom-ref': `sqlite@${version}`,
    type: 'library',
    name: 'sqlite',
    version,
    purl: `pkg:generic/sqlite@${version}`,
    cpe: `cpe:2.3:a:sqlite:sqlite:${version}:*:*:*:*:*:*:*`,
    licenses: [{ license: { id: 'blessing' } }],
    externalReferences: [{ type: 'website', url: 'https://sqlite.org/' }],
  }
}
