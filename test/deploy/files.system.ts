import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { validate as problemsOfDockerfile } from 'dockerfile-utils'
import { StatefulSet } from 'kubernetes-models/apps/v1'
import { ConfigMap, Namespace, Secret, Service } from 'kubernetes-models/v1'
import packageJson from '../../package.json'
import { exit } from '../../src/commands/common.ts'
import { readConfig } from '../../src/config/config.ts'
import { readConfigurationFile } from '../../src/config/configuration-file.ts'
import { temporaryFolder } from '../support/app.ts'
import {
  type Composed,
  deploy,
  dockerfile,
  imageEnv,
  kustomized,
  longestStopSeconds,
  type Manifest,
  manifestsOf,
  merged,
  named,
  problemsOfCompose,
  read,
  seconds,
  sorted,
  typeChecked,
} from './manifests.ts'
import { kubernetesTool, whyNoTool } from './tools.ts'

// Checks the files in deploy/ with the linter of each format, and against the program that they run.

const folder = temporaryFolder()
afterAll(() => folder.remove())

test('every image of another project is pinned by a digest', () => {
  const files = readdirSync(deploy, { recursive: true, encoding: 'utf8' })
  const images = files
    .filter((file) => /(?:^|\/)Dockerfile$|\.yml$/.test(file))
    .flatMap((file) => [...read(file).matchAll(/^\s*(?:FROM (?:--\S+ )?|(?:- )?image: |# syntax=)(\S+)/gm)])
    .map(([, image = '']) => image)
    .filter((image) => !/^(?:registry\.example\.com\/)?otpost(?::|$)/.test(image))
  expect(images.length).toBeGreaterThan(5)
  expect(images.filter((image) => !/^\S+:[\w.-]+@sha256:[0-9a-f]{64}$/.test(image))).toEqual([])
})

describe('the Dockerfile', () => {
  test('passes its linter, which detects typing errors', () => {
    expect(problemsOfDockerfile(dockerfile)).toEqual([])
    const slips = [
      dockerfile.replace('--interval', '--intervall'),
      dockerfile.replace('STOPSIGNAL SIGTERM', 'STOPSIGNAL'),
      dockerfile.replace('USER ', 'USR '),
    ]
    expect(slips.map((text) => problemsOfDockerfile(text).length > 0)).toEqual([true, true, true])
  })

  test('builds with the Bun version of the program, and copies binaries that the build creates', async () => {
    expect(dockerfile).toContain(
      `RUN npm install --global bun@${packageJson.engines.bun.replace('>=', '')}\n`,
    )
    const { targets } = await import('../../release/build.ts')
    const named = [...dockerfile.matchAll(/target=([\w-]+) ;;/g)].map(([, target = '']) => target)
    expect(named).toEqual(['linux-x64', 'linux-arm64'])
    expect(Object.keys(targets)).toEqual(expect.arrayContaining(named))
  })

  test('sets only settings of the program', () => {
    expect(Object.keys(imageEnv)).toEqual(['NODE_ENV', 'HOST', 'PORT', 'DATABASE_URL', 'SQLITE_TMPDIR'])
    expect(readConfig({ ...imageEnv, OUTBOX_IN_PRODUCTION: '1' })).toMatchObject({
      host: '0.0.0.0',
      database: { kind: 'sqlite', file: '/data/otpost.db' },
    })
  })
})

describe('the compose file', () => {
  const compose = Bun.YAML.parse(read('compose.yml')) as { services: Record<string, Composed>; name: string }
  test('matches its schema, which detects typing errors', () => {
    expect(problemsOfCompose(compose)).toEqual([])
    const slip = { ...compose.services.otpost, enviroment: {} }
    expect(problemsOfCompose({ ...compose, services: { ...compose.services, otpost: slip } })).not.toEqual([])
  })

  test('gives each service minimal rights, and publishes no other port', () => {
    expect(Object.keys(compose.services)).toEqual(['otpost', 'mailpit', 'litestream'])
    for (const service of Object.values(compose.services)) {
      expect(service).toMatchObject({
        read_only: true,
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
      })
      for (const port of service.ports ?? []) expect(port).toStartWith('127.0.0.1:')
    }
    // The SQLite library is loaded from /tmp, which Docker mounts with noexec by default.
    expect(compose.services.otpost?.tmpfs).toMatch(/^\/tmp:(?:.*,)?exec(?:,|$)/)
    expect(compose.services.litestream?.user).toBe(/^USER '?([\d:]+)/m.exec(dockerfile)?.[1] ?? '')
  })

  test('has settings that the server accepts, and gives it enough time to stop', () => {
    const { environment, stop_grace_period: grace = '' } = compose.services.otpost ?? expect.unreachable()
    const config = readConfig({ ...imageEnv, ...environment })
    expect(config.smtp?.server).toMatchObject({ host: 'mailpit', port: 1025, secure: false, ignoreTLS: true })
    expect(seconds(grace)).toBeGreaterThan(longestStopSeconds)
  })

  test('has Litestream read the database at the path in its configuration', () => {
    const { dbs } = Bun.YAML.parse(read('litestream.yml')) as {
      dbs: { path: string; replicas: { path: string }[] }[]
    }
    const places = compose.services.litestream?.volumes ?? []
    expect(places).toContain(`data:${dbs[0]?.path.replace(/\/otpost\.db$/, '')}`)
    expect(
      places.some((place) => place.endsWith(`:${dbs[0]?.replicas[0]?.path.replace(/\/otpost$/, '')}`)),
    ).toBe(true)
  })
})

describe('the manifests of Kubernetes', () => {
  const base = manifestsOf('base/otpost.yml')
  const extra = manifestsOf('litestream/litestream.yml')
  const set = named(base, 'StatefulSet')
  const pod = set.spec?.template.spec ?? expect.unreachable()
  const [container = expect.unreachable()] = pod.containers
  const withSidecar = merged(set, manifestsOf('litestream/sidecar.yml')[0] ?? expect.unreachable())

  test('match the types of the API, and have no unknown field', async () => {
    const models = { Namespace, Secret, ConfigMap, Service, StatefulSet }
    const all = [...base, ...extra, withSidecar]
    expect(base.map(({ kind }) => kind)).toEqual([
      'Namespace',
      'Secret',
      'ConfigMap',
      'ConfigMap',
      'Service',
      'StatefulSet',
    ])
    for (const manifest of all) {
      const Model = models[manifest.kind as keyof typeof models]
      new Model(manifest as never).validate()
    }
    // Schemas allow unknown fields, literals of the generated types do not: so the compiler checks them.
    const slip = merged(set, { spec: { template: { spec: { securityContex: {} } } } })
    const { code, stdout } = await typeChecked([...all, slip], folder.path)
    expect(stdout.match(/error TS/g)).toHaveLength(1)
    expect(stdout).toMatch(/securityContex\W+ does not exist in type 'IPodSpec'/)
    expect(code).not.toBe(0)
  })

  test('meet the strictest security profile, which the namespace enforces', () => {
    expect(named(base, 'Namespace').metadata.labels).toEqual({
      'pod-security.kubernetes.io/enforce': 'restricted',
    })
    const spec = withSidecar.spec?.template.spec ?? expect.unreachable()
    expect(spec.securityContext).toMatchObject({
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' },
    })
    const containers = [...spec.containers, ...(spec.initContainers ?? [])]
    expect(containers.map(({ name }) => name)).toEqual(['otpost', 'litestream'])
    for (const { securityContext } of containers) {
      expect(securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
    }
  })

  test('name existing things: the newest version, probes, volumes, secrets', async () => {
    expect(container.image).toEndWith(`/otpost:${packageJson.version}`)
    expect(set.spec?.replicas).toBe(1)
    const { openApi } = await import('../../src/adapters/http/openapi.ts')
    for (const probe of [container.startupProbe, container.livenessProbe, container.readinessProbe]) {
      expect(Object.keys(openApi('0', false).paths)).toContain(probe?.httpGet.path ?? '')
    }
    const { volumeClaimTemplates } = set.spec as unknown as { volumeClaimTemplates: Manifest[] }
    const spec = withSidecar.spec?.template.spec ?? expect.unreachable()
    const volumes = [
      ...spec.volumes.map(({ name }) => name),
      ...volumeClaimTemplates.map(({ metadata }) => metadata.name),
    ]
    for (const { volumeMounts } of [...spec.containers, ...(spec.initContainers ?? [])]) {
      for (const { name } of volumeMounts) expect(volumes).toContain(name)
    }
    expect(container.volumeMounts.map(({ mountPath }) => mountPath)).toEqual([
      '/data',
      '/etc/otpost/configuration',
      '/tmp',
    ])
    const sources = [...base, ...extra].map(({ kind, metadata: { name } }) => `${kind} ${name}`)
    for (const { configMap } of spec.volumes)
      if (configMap) expect(sources).toContain(`ConfigMap ${configMap.name}`)
    for (const { envFrom } of [...spec.containers, ...(spec.initContainers ?? [])]) {
      for (const source of envFrom) {
        const [[reference = '', { name }] = expect.unreachable()] = Object.entries<{ name: string }>(
          source as never,
        )
        expect(sources).toContain(`${reference === 'secretRef' ? 'Secret' : 'ConfigMap'} ${name}`)
      }
    }
  })

  test('have settings that the server accepts, and give it enough time to stop', () => {
    const settings = { ...imageEnv, ...named(base, 'ConfigMap').data, ...named(base, 'Secret').stringData }
    // The server rejects the placeholders with a message.
    expect(() => readConfig(settings)).toThrow(/^SECRET_KEY .*32 bytes[^\n]*$/)
    const { shutdownDelaySeconds, metrics, trustedProxies } = readConfig({
      ...settings,
      SECRET_KEY: 'of the test and 32 bytes long or more',
    })
    expect(metrics?.listener?.port).toBe(9464)
    // The ingress alone: a client in a trusted network can choose the IP address that limits count.
    expect(trustedProxies.map(([, bits]) => bits >= 24)).toEqual([true])
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(shutdownDelaySeconds + longestStopSeconds)
  })

  test('mount a configuration file that the server accepts at the path of CONFIG_FILE', () => {
    const { data = {} } =
      base.find(({ metadata }) => metadata.name === 'otpost-configuration') ?? expect.unreachable()
    const mount = container.volumeMounts.find(({ name }) => name === 'configuration')
    const [[name, text] = expect.unreachable()] = Object.entries(data)
    expect(named(base, 'ConfigMap').data?.CONFIG_FILE).toBe(`${mount?.mountPath}/${name}`)
    expect([...readConfigurationFile(name, [], text).sections].map(([{ name }]) => name)).toEqual(['brands'])
  })

  test('consist of existing files', () => {
    for (const place of ['kubernetes/base', 'kubernetes/litestream']) {
      const { resources, patches = [] } = Bun.YAML.parse(read(`${place}/kustomization.yaml`)) as {
        resources: string[]
        patches?: { path: string }[]
      }
      const named = [...resources, ...patches.map(({ path }) => path)]
      expect(named.filter((path) => !existsSync(join(deploy, place, path)))).toEqual([])
      const files = readdirSync(join(deploy, place)).filter((path) => path.endsWith('.yml'))
      expect(files.filter((path) => !named.includes(path))).toEqual([])
    }
  })

  const kubectl = kubernetesTool('kubectl', folder.path)
  test.skipIf(kubectl === null)(
    `are merged by kubectl as by these tests${kubectl === null ? ` (${whyNoTool})` : ''}`,
    () => {
      const { made, said } = kustomized(kubectl ?? '', 'litestream')
      expect(said).toBe('')
      const all = [...base.filter(({ kind }) => kind !== 'StatefulSet'), ...extra, withSidecar]
      expect(sorted(made)).toEqual(sorted(all))
    },
  )

  test('have Litestream read the database at the path of the image', () => {
    const { dbs } = Bun.YAML.parse(named(extra, 'ConfigMap').data?.['litestream.yml'] ?? '') as {
      dbs: { path: string }[]
    }
    expect(dbs.map(({ path }) => `file:${path}`)).toEqual([imageEnv.DATABASE_URL ?? ''])
  })
})

describe('the unit of systemd', () => {
  const analyze = Bun.which('systemd-analyze')
  const isMissing = analyze === null
  const without = isMissing ? ' (systemd-analyze is not installed)' : ''
  const unit = read('systemd/otpost.service')
  const directive = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? ''

  beforeAll(() => {
    // systemd-analyze looks for the programs, which are not installed here.
    const program = join(folder.path, 'program')
    writeFileSync(program, '#!/bin/sh\n')
    chmodSync(program, 0o755)
    for (const name of ['otpost.service', 'otpost-litestream.service']) {
      writeFileSync(
        join(folder.path, name),
        read(`systemd/${name}`).replace(/^ExecStart=\S+/m, `ExecStart=${program}`),
      )
    }
  })
  const run = (...args: string[]) => {
    const done = Bun.spawnSync([analyze ?? '', '--no-pager', ...args], { stderr: 'pipe' })
    return { exitCode: done.exitCode, said: done.stdout.toString() + done.stderr.toString() }
  }

  test.skipIf(isMissing)(`is valid, and so is Litestream's${without}`, () => {
    const units = ['otpost.service', 'otpost-litestream.service'].map((name) => join(folder.path, name))
    expect(run('verify', ...units)).toEqual({ exitCode: 0, said: '' })
    const slip = join(folder.path, 'slip.service')
    writeFileSync(slip, `${readFileSync(units[0] ?? '', 'utf8')}\n[Service]\nProtectSytem=strict\n`)
    expect(run('verify', slip).said).toContain('ProtectSytem')
  })

  test.skipIf(isMissing)(`has a low exposure level${without}`, () => {
    // In tenths. The rest is the network, memory for compiled code, and no root directory of its own.
    for (const [name, tenths] of [
      ['otpost', 12],
      ['otpost-litestream', 14],
    ] as const) {
      const { exitCode, said } = run(
        'security',
        '--offline=true',
        `--threshold=${tenths}`,
        join(folder.path, `${name}.service`),
      )
      expect({ name, exitCode, said: exitCode === 0 ? '' : said }).toEqual({ name, exitCode: 0, said: '' })
    }
  })

  test('stops and restarts according to the exit status of the server', () => {
    expect(seconds(directive('TimeoutStopSec'))).toBeGreaterThan(longestStopSeconds)
    expect(directive('RestartPreventExitStatus')).toBe(String(exit.config))
    // Bun may not compile code under it, and took eight times as long for a loop.
    expect(directive('MemoryDenyWriteExecute')).toBe('')
  })

  test('has settings that the server accepts, and a folder of its own', () => {
    const lines = read('systemd/otpost.env')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
    const settings = Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    )
    // A shell, and --env-file, must read the same values as systemd.
    for (const value of Object.values(settings)) expect(value).not.toMatch(/['"\\$`#]/)
    const { database, trustedProxies, smtp } = readConfig(settings)
    expect(database.name).toStartWith(`/var/lib/${directive('StateDirectory')}/`)
    expect(trustedProxies).toHaveLength(1)
    expect(smtp?.server.secure).toBe(true)
  })
})
