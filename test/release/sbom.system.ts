import { beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import Ajv from 'ajv'
import addFormats from 'ajv-formats'
import packageJson from '../../package.json'
import { type Bom, makeSbom } from '../../release/sbom.ts'

// The bill of materials lists the contents of the binaries, and nothing else.

const root = join(import.meta.dir, '../..')

describe.skipIf(!Bun.which('npm'))('the bill of materials (needs npm)', () => {
  let bom: Bom
  beforeAll(async () => {
    bom = await makeSbom()
  })
  const named = () => new Map(bom.components.map(({ name, version }) => [name, version]))

  test('matches the schema of CycloneDX', () => {
    const schemas = join(root, 'node_modules/@cyclonedx/cyclonedx-library/res/schema')
    const read = (name: string) =>
      JSON.parse(readFileSync(join(schemas, `${name}.SNAPSHOT.schema.json`), 'utf8'))
    const ajv = new Ajv({ strict: false, allErrors: true })
    // The CycloneDX schema refers to the others by these names, which are not their ids.
    for (const name of ['spdx', 'jsf-0.82']) {
      ajv.addSchema(read(name), `http://cyclonedx.org/schema/${name}.SNAPSHOT.schema.json`)
    }
    addFormats(ajv)
    // Formats that ajv-formats does not have.
    ajv.addFormat('idn-email', /^\S+@\S+$/)
    ajv.addFormat('iri-reference', /^[^\s<>"{}|\\^`]*$/)
    const isBom = ajv.compile(read(`bom-${bom.specVersion}`))
    isBom(bom)
    expect(isBom.errors ?? []).toEqual([])
    expect(isBom({ ...bom, components: [{ name: 'nameless' }] })).toBe(false)
  })

  test('has every dependency with its version, and no development dependency', () => {
    expect(Object.fromEntries(named())).toMatchObject(packageJson.dependencies)
    expect(Object.keys(packageJson.devDependencies).filter((name) => named().has(name))).toEqual([])
  })

  test('has parts that are no packages: Bun, and SQLite in better-sqlite3', () => {
    expect(named().get('bun')).toBe(Bun.version)
    expect(named().get('sqlite')).toMatch(/^3\.\d+\.\d+$/)
    expect(bom.dependencies.find(({ ref }) => ref.startsWith('better-sqlite3@'))?.dependsOn).toContain(
      `sqlite@${named().get('sqlite')}`,
    )
  })

  test('lists the dependencies of each component, and no component without a dependent', () => {
    const refs = [
      bom.metadata.component['bom-ref'],
      ...bom.components.map((component) => component['bom-ref']),
    ]
    const needed = bom.dependencies.flatMap(({ dependsOn = [] }) => dependsOn)
    expect(new Set(refs).size).toBe(refs.length)
    expect(bom.dependencies.map(({ ref }) => ref).sort()).toEqual(refs.sort())
    expect(needed.filter((ref) => !refs.includes(ref))).toEqual([])
    expect(
      bom.components.map((component) => component['bom-ref']).filter((ref) => !needed.includes(ref)),
    ).toEqual([])
  })

  test('names otpost, and contains no path of the build machine', () => {
    expect(bom.metadata.component).toMatchObject({ name: 'otpost', version: packageJson.version })
    expect(JSON.stringify(bom)).not.toContain(root)
  })
})
