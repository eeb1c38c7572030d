import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Deployment } from 'kubernetes-models/apps/v1'
import { Job } from 'kubernetes-models/batch/v1'
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1'
import { ConfigMap } from 'kubernetes-models/v1'
import { readConfig } from '../../src/config/config.ts'
import { pageAt } from '../docs/pages.ts'
import { temporaryFolder } from '../support/app.ts'
import { freePorts } from '../support/ports.ts'
import { freshDatabase, withoutPostgres } from '../support/postgres.ts'
import { startReceiver } from '../support/receiver.ts'
import { freshPhone } from '../support/rows.ts'
import { otpost, startServer, type TestServer } from '../support/server.ts'
import {
  type Composed,
  deploy,
  imageEnv,
  kustomized,
  longestStopSeconds,
  manifestsOf,
  merged,
  named,
  problemsOfCompose,
  read,
  seconds,
  sorted,
  typeChecked,
} from './manifests.ts'
import { replaced, started } from './programs.ts'

// Several nodes on one PostgreSQL: checks the files for compose and Kubernetes against the API and the program, and runs
// real nodes behind the load balancers of the examples.

const folder = temporaryFolder()
afterAll(() => folder.remove())
const caddyfile = read('caddy/nodes.Caddyfile')

describe('the compose file of several nodes', () => {
  const variables: Readonly<Record<string, string>> = {
    DATABASE_PASSWORD: '0123456789abcdef',
    SECRET_KEY: 'of the test and 32 bytes long or more',
  }
  const text = read('compose.postgres.yml')
  /** The variables that compose substitutes; those with `:?` are required. */
  const interpolated = text.replace(
    /\$\{(\w+):([-?])([^}]*)\}/g,
    (_, name: string, kind: string, other: string) => {
      const value = variables[name]
      if (value === undefined && kind === '?') throw new Error(`${name} ${other}`)
      return value ?? other
    },
  )
  const compose = Bun.YAML.parse(interpolated) as {
    services: Record<string, Composed & { healthcheck?: { test: string[] }; depends_on?: object }>
    networks: Record<string, { internal?: boolean; ipam?: { config: { subnet: string }[] } } | null>
  }
  const nodes = Object.entries(compose.services).filter(([name]) => name.startsWith('otpost-'))

  test('matches its schema, and contains no password and no secret key', () => {
    expect(problemsOfCompose({ ...compose })).toEqual([])
    for (const name of Object.keys(variables)) expect(text).toContain(`\${${name}:?`)
    expect(text).not.toMatch(/PASSWORD: (?!\$\{)|SECRET_KEY: (?!\$\{)/)
    expect(readFileSync(join(deploy, '../.gitignore'), 'utf8').split('\n')).toContain('.env')
  })

  test('gives each service minimal rights, and access to the database to the nodes alone', () => {
    expect(Object.keys(compose.services)).toEqual(['otpost-1', 'otpost-2', 'otpost-3', 'caddy', 'postgres'])
    for (const [name, service] of Object.entries(compose.services)) {
      expect(service).toMatchObject({
        read_only: true,
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
      })
      expect(service.cap_add).toEqual(name === 'caddy' ? ['NET_BIND_SERVICE'] : undefined)
      for (const port of service.ports ?? []) expect(port).toStartWith('127.0.0.1:')
      expect([name, service.networks]).toEqual([
        name,
        name === 'caddy' ? ['front'] : name === 'postgres' ? ['database'] : ['front', 'database'],
      ])
    }
    expect(compose.networks.database?.internal).toBe(true)
    // Only the SQLite library needs an executable /tmp, and nodes on PostgreSQL do not load it.
    for (const [, { tmpfs }] of nodes) expect(tmpfs).not.toContain('exec')
  })

  test('has settings that the nodes accept, the same for all, and gives them enough time to stop', () => {
    expect(nodes).toHaveLength(3)
    for (const [, { environment, stop_grace_period: grace = '' }] of nodes) {
      expect(environment).toEqual(nodes[0]?.[1].environment ?? {})
      const config = readConfig({ ...imageEnv, ...environment })
      expect(config.database).toMatchObject({ kind: 'postgres', name: 'postgres://postgres/otpost' })
      const { POSTGRES_USER: user, POSTGRES_PASSWORD: password } =
        compose.services.postgres?.environment ?? {}
      expect(environment?.DATABASE_URL).toStartWith(`postgres://${user}:${password}@postgres/otpost?`)
      expect(environment?.TRUSTED_PROXIES).toBe(compose.networks.front?.ipam?.config[0]?.subnet)
      expect(seconds(grace)).toBeGreaterThan(config.shutdownDelaySeconds + longestStopSeconds)
      // By then Caddy has checked the node's health, and sends it no more requests.
      const interval = /health_interval (\d+s)/.exec(caddyfile)?.[1] ?? ''
      expect(config.shutdownDelaySeconds).toBeGreaterThan(2 * seconds(interval))
    }
  })

  test('has Caddy use these nodes, and otherwise the Caddyfile of a single server', () => {
    const mounted = compose.services.caddy?.volumes?.[0]?.split(':')[0] ?? ''
    expect(existsSync(join(deploy, mounted))).toBe(true)
    expect(/reverse_proxy (.*) \{/.exec(caddyfile)?.[1]).toBe(nodes.map(([name]) => `${name}:3000`).join(' '))
    expect(compose.services.caddy?.ports).toEqual([`127.0.0.1:3000:${/^:(\d+) \{$/m.exec(caddyfile)?.[1]}`])
    const rules = (file: string) =>
      file
        .slice(file.indexOf('\n\n'), file.indexOf('\n}\n', file.indexOf('handle_errors')))
        .replace(/^(?:otp\.example\.com|:\d+) \{$/m, '')
        .replace(/reverse_proxy .* \{/, 'reverse_proxy {')
        .replace(/\t\t\tlb_policy[\s\S]*?(?=\t\t\t# otpost logs)/, '')
    expect(rules(caddyfile)).toBe(rules(read('caddy/Caddyfile')))
    expect(rules(caddyfile).length).toBeGreaterThan(2000)
  })
})

describe('the manifests of several nodes', () => {
  const base = manifestsOf('base/otpost.yml')
  const own = manifestsOf('postgres/nodes.yml')
  const secret = merged(named(base, 'Secret'), manifestsOf('postgres/database.yml')[0])
  const deployment = named(own, 'Deployment')
  const spec = deployment.spec?.template.spec ?? expect.unreachable()
  const [container = expect.unreachable()] = spec.containers
  const set = named(base, 'StatefulSet').spec?.template.spec ?? expect.unreachable()
  const whole = [...base.filter(({ kind }) => kind !== 'StatefulSet' && kind !== 'Secret'), secret, ...own]

  test('have a Job that moves the volume of the single server to the database', () => {
    const [job = expect.unreachable()] = manifestsOf('postgres/move.yml')
    new Job(job as never).validate()
    const { containers, volumes, restartPolicy } =
      named([job], 'Job').spec?.template.spec ?? expect.unreachable()
    const [mover = expect.unreachable()] = containers
    expect([mover.image, restartPolicy]).toEqual([container.image, 'Never'])
    expect(mover.args).toEqual(['move', '--from', 'file:/data/otpost.db'])
    // A claim is named after its template, its StatefulSet and the number of the replica.
    const [claim] = named(base, 'StatefulSet').spec?.volumeClaimTemplates ?? []
    expect(volumes?.map(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName)).toContain(
      `${claim?.metadata?.name}-otpost-0`,
    )
    expect(volumes?.map(({ configMap }) => configMap?.name)).toContain(own[0]?.metadata?.name)
  })

  test('match the types of the API, and have no unknown field', async () => {
    const models = { ConfigMap, Deployment, PodDisruptionBudget }
    expect(own.map(({ kind }) => kind)).toEqual(Object.keys(models))
    for (const manifest of own) {
      const Model = models[manifest.kind as keyof typeof models]
      new Model(manifest as never).validate()
    }
    const slip = merged(deployment, { spec: { strategy: { rollingUpdate: { maxSurg: 1 } } } })
    const { code, stdout } = await typeChecked([...own, secret, slip], folder.path)
    expect(stdout.match(/error TS/g)).toHaveLength(1)
    expect(stdout).toContain('maxSurg')
    expect(code).not.toBe(0)
  })

  test('differ from the single server only in the database', () => {
    const { volumeMounts: _, startupProbe: starting, ...ofNode } = container
    const {
      volumeMounts: __,
      startupProbe: startingAlone,
      ...ofServer
    } = set.containers[0] ?? expect.unreachable()
    expect(ofNode).toEqual(ofServer)
    // As long as a node may wait for another node that migrates the database.
    expect((starting?.periodSeconds ?? 0) * (starting?.failureThreshold ?? 0)).toBeGreaterThan(600)
    expect(starting?.httpGet).toEqual(startingAlone?.httpGet ?? { path: '' })
    const {
      fsGroup: ___,
      fsGroupChangePolicy: ____,
      ...ofPod
    } = set.securityContext as Record<string, unknown>
    expect(spec.securityContext).toEqual(ofPod)
    expect(spec.terminationGracePeriodSeconds).toBe(set.terminationGracePeriodSeconds)
    expect(deployment.spec?.replicas).toBe(3)
  })

  test('name existing things', () => {
    const labels = deployment.spec?.template.metadata.labels ?? {}
    for (const kind of ['Service', 'PodDisruptionBudget', 'Deployment']) {
      const { selector = {} } = named(whole, kind).spec as { selector?: object }
      expect(labels).toMatchObject('matchLabels' in selector ? (selector.matchLabels as object) : selector)
    }
    expect(container.volumeMounts.map(({ name }) => name).sort()).toEqual(
      spec.volumes.map(({ name }) => name).sort(),
    )
    const sources = whole.map(({ kind, metadata: { name } }) => `${kind} ${name}`)
    for (const { configMap } of spec.volumes)
      if (configMap) expect(sources).toContain(`ConfigMap ${configMap.name}`)
  })

  test('have settings that the nodes accept, and the certificate at the path that these name', () => {
    const settings = {
      ...imageEnv,
      ...named(base, 'ConfigMap').data,
      ...secret.stringData,
      SECRET_KEY: 'of the test and 32 bytes long or more',
    }
    const { database } = readConfig(settings)
    if (database.kind !== 'postgres') expect.unreachable()
    const { tls } = database.target
    expect(tls.mode).toBe('verify-full')
    const mount = container.volumeMounts.find(({ name }) => name === 'database')
    const file = Object.keys(own.find(({ metadata }) => metadata.name === 'otpost-database')?.data ?? {})
    expect(file.map((name) => `${mount?.mountPath}/${name}`)).toEqual([tls.caFile ?? ''])
  })

  const kubectl = Bun.which('kubectl')
  test.skipIf(kubectl === null)(
    `are merged by kubectl as by these tests${kubectl === null ? ' (kubectl is not installed)' : ''}`,
    () => {
      const { made, said } = kustomized(kubectl ?? '', 'postgres')
      expect(said).toBe('')
      expect(sorted(made)).toEqual(sorted(whole))
    },
  )
})

const installed = [
  ['Caddy', Bun.which('caddy')],
  ['nginx', Bun.which('nginx')],
] as const
for (const [name, program] of installed) {
  const without =
    program === null ? ', which is not installed' : withoutPostgres ? ` (${withoutPostgres})` : ''
  describe.skipIf(without !== '')(`three nodes behind ${name}${without}`, () => {
    const receiver = startReceiver()
    const ending = new AsyncDisposableStack()
    const nodes: TestServer[] = []
    let url: string
    beforeAll(async () => {
      ending.defer(() => receiver.stop())
      const database = await freshDatabase()
      ending.defer(() => database.remove())
      const ports = freePorts(3)
      const settings = {
        DATABASE_URL: database.url,
        SECRET_KEY: 'of the test and 32 bytes long or more',
        DATABASE_POOL_SIZE: '3',
        DATABASE_CONNECT_TIMEOUT_MS: '30000',
        DATABASE_STATEMENT_TIMEOUT_MS: '30000',
        PROVIDER_TIMEOUT_MS: '30000',
        TRUSTED_PROXIES: '127.0.0.1',
        SMS_PLAIN: 'webhook',
        ...receiver.env,
        // nginx does not check health. Caddy does so often enough to notice a stop in time on a busy machine too.
        SHUTDOWN_DELAY_SECONDS: name === 'Caddy' ? '6' : '0',
      }
      expect(await otpost(['brand', 'put', 'acme', '--name', 'Acme'], settings)).toMatchObject({ code: 0 })
      nodes.push(
        ...(await Promise.all(ports.map((port) => startServer({ ...settings, PORT: String(port) })))),
      )
      ending.defer(async () => {
        await Promise.all(nodes.map((node) => node.stop('SIGKILL')))
      })
      const [port = 0] = freePorts(1)
      url = `http://127.0.0.1:${port}`
      const start = name === 'Caddy' ? startCaddy : startNginx
      const { stop } = await start(program ?? '', port, ports)
      ending.defer(async () => {
        await stop()
      })
    })
    afterAll(() => ending.disposeAsync())

    const post = async (path: string, fields: object) => {
      const response = await fetch(url + path, {
        method: 'POST',
        // nginx closes idle connections when it reloads its settings.
        keepalive: false,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ appId: 'shop', apiKey: 'key-of-the-shop', brandId: 'acme', ...fields }),
      })
      return { status: response.status, body: await response.json() }
    }

    /** Sends and verifies codes until the work is done. Resolves to the unexpected answers. */
    async function surprisesWhile(
      work: () => Promise<unknown>,
    ): Promise<{ surprises: unknown[]; logins: number }> {
      let isOver = false
      let logins = 0
      const surprises: unknown[] = []
      const client = async () => {
        while (!isOver) {
          const phone = freshPhone()
          const sent = await post('/otp/send', { phone })
          const text: string = receiver.received.findLast(({ body }) => body.to === phone)?.body.text ?? ''
          const otp = /\d{6}/.exec(text)?.[0] ?? ''
          const verified = await post('/otp/verify', { phone, otp })
          const again = await post('/otp/verify', { phone, otp })
          logins++
          const statuses = [sent.status, verified.status, again.status]
          if (statuses.join() !== '200,200,404') surprises.push(statuses)
        }
      }
      const clients = [client(), client(), client()]
      await work()
      isOver = true
      await Promise.all(clients)
      return { surprises, logins }
    }
    /** The number of requests of the load in a node's log. */
    const answered = (node: TestServer | undefined) =>
      node?.lines.filter((line) => line.includes('"route":"/otp/')).length ?? 0
    async function moreFrom(node: TestServer | undefined): Promise<void> {
      const before = answered(node)
      while (answered(node) < before + 5) await Bun.sleep(10)
    }

    /** As the page says for nginx: the node is marked `down` before it stops. Caddy checks its health. */
    async function retire(node: TestServer | undefined): Promise<void> {
      if (name === 'Caddy') return
      const home = join(folder.path, 'nginx')
      const config = join(home, 'otpost.conf')
      const named = `server 127.0.0.1:${node?.url.port}`
      writeFileSync(config, replaced(readFileSync(config, 'utf8'), [[new RegExp(named), `${named} down`]]))
      process.kill(Number(readFileSync(join(home, 'pid'), 'utf8')), 'SIGHUP')
      const others = () =>
        nodes.filter((each) => each !== node).reduce((sum, each) => sum + answered(each), 0)
      for (let isAsked = true; isAsked; ) {
        const [before, ofOthers] = [answered(node), others()]
        while (others() < ofOthers + 20) await Bun.sleep(10)
        isAsked = answered(node) > before
      }
    }

    test('every node gets requests, and each stops in turn without a failed request', async () => {
      const [first, second, third] = nodes
      const { surprises, logins } = await surprisesWhile(async () => {
        await Promise.all(nodes.map(moreFrom))
        await retire(first)
        expect(await first?.stop()).toBe(0)
        await moreFrom(second)
        await retire(second)
        expect(await second?.stop()).toBe(0)
        await moreFrom(third)
      })
      expect(surprises).toEqual([])
      expect(logins).toBeGreaterThan(5)
    })

    test('it answers in the envelope when all nodes are away', async () => {
      await Promise.all(nodes.map((node) => node.stop('SIGKILL')))
      expect(await post('/otp/send', { phone: freshPhone() })).toMatchObject({
        status: 503,
        body: { success: false, error: 'unavailable', requestId: expect.any(String) },
      })
    })
  })
}

async function startCaddy(program: string, port: number, nodePorts: readonly number[]) {
  const home = join(folder.path, 'caddy')
  mkdirSync(home)
  const example = replaced(caddyfile, [
    [/^:8080/m, `http://127.0.0.1:${port}`],
    [/otpost-1:3000 otpost-2:3000 otpost-3:3000/, nodePorts.map((each) => `127.0.0.1:${each}`).join(' ')],
    [/health_interval 2s/, 'health_interval 200ms'],
    [/^\{\n/m, '{\n\tadmin off\n'],
  ])
  expect(Bun.spawnSync([program, 'fmt', join(deploy, 'caddy/nodes.Caddyfile')]).stdout.toString()).toBe(
    caddyfile,
  )
  const config = join(home, 'Caddyfile')
  writeFileSync(config, example)
  return started(
    [program, 'run', '--adapter', 'caddyfile', '--config', config],
    /serving initial configuration/,
    home,
  )
}

async function startNginx(program: string, port: number, nodePorts: readonly number[]) {
  const home = join(folder.path, 'nginx')
  mkdirSync(home)
  const { samples } = pageAt('docs/postgres.md')
  const lines = samples.find(({ code }) => code.startsWith('upstream otpost'))?.code ?? expect.unreachable()
  const [upstream = '', retries = ''] = lines.split('\n\n')
  const plain = replaced(read('nginx/otpost.conf'), [
    [/^upstream otpost \{[\s\S]*?^\}/m, upstream],
    [/proxy_next_upstream off;/, retries],
    // Without the plain-HTTP server and TLS: the test is about the choice of nodes.
    [/^server \{\n {2}listen 80;[\s\S]*?^\}/m, ''],
    [/listen 443 ssl;/, `listen 127.0.0.1:${port};`],
    [/ *listen \[::\]:.*\n/g, ''],
    [/ *ssl_.*\n/g, ''],
    [/\/var\/log\/nginx\//g, `${home}/`],
  ])
  const config = nodePorts.reduce(
    (changed, each, index) => changed.replace(`server 10.0.0.1${index + 1}:3000`, `server 127.0.0.1:${each}`),
    plain,
  )
  writeFileSync(join(home, 'otpost.conf'), config)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const main = join(home, 'nginx.conf')
  writeFileSync(
    main,
    [
      // As root, its workers would run as another user, who can not read this folder.
      `${process.getuid?.() === 0 ? 'user root; ' : ''}daemon off; pid ${home}/pid; error_log stderr notice;`,
      'events {}',
      `http { ${temporary.map((each) => `${each}_temp_path ${home}/${each};`).join(' ')} include ${home}/otpost.conf; }`,
    ].join('\n'),
  )
  const checked = Bun.spawnSync([program, '-t', '-p', home, '-c', main], { stderr: 'pipe' })
  expect(checked.stderr.toString()).toContain('test is successful')
  expect(checked.stderr.toString()).not.toMatch(/\[(?:warn|emerg|error)\]/)
  return started([program, '-p', home, '-c', main], / nginx\//, home)
}
