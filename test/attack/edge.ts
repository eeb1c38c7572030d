import { readFileSync } from 'node:fs'
import { passwordHash } from '../support/console.ts'
import { temporaryFolder } from '../support/folder.ts'
import { programEnv, programLine } from '../support/program.ts'
import {
  type Attack,
  anyOf,
  attack,
  doctorWarning,
  hasWarned,
  rawGet,
  repositoryFile,
  startTarget,
  unlessRefused,
  verdict,
} from './attack.ts'

const phone = '+44 7911 123456'

/** The API key that the demo prints, of a demo in a new folder. */
async function demoKey(): Promise<string> {
  const folder = temporaryFolder()
  const child = Bun.spawn(programLine(['demo']), {
    cwd: folder.path,
    env: programEnv({ PORT: '0' }),
    stdout: 'pipe',
    stderr: 'ignore',
  })
  try {
    let text = ''
    for await (const chunk of child.stdout) {
      text += new TextDecoder().decode(chunk)
      const [, key] = /"apiKey":"([^"]+)"/.exec(text) ?? []
      if (key !== undefined) return key
    }
    throw new Error(`the demo printed no key: ${text}`)
  } finally {
    child.kill('SIGKILL')
    await child.exited
    folder.remove()
  }
}

/** Resident memory, in MB. */
function memoryOf({ pid }: { readonly pid: number }): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
}

const addresses: readonly Attack[] = [
  ...['0.0.0.0/0', '::/0', '10.0.0.0/8,::/0'].map((TRUSTED_PROXIES) => ({
    title: `X-Forwarded-For from anywhere, with TRUSTED_PROXIES=${TRUSTED_PROXIES}`,
    play: () => unlessRefused('TRUSTED_PROXIES', { TRUSTED_PROXIES }),
  })),
  {
    title: 'X-Forwarded-For from any pod of the Kubernetes files',
    async play() {
      const [, value = ''] =
        /TRUSTED_PROXIES: (.*)/.exec(repositoryFile('deploy/kubernetes/base/otpost.yml')) ?? []
      const isBroad = value.split(',').some((network) => Number(/\/(\d+)/.exec(network)?.[1] ?? 32) < 16)
      return isBroad ? `TRUSTED_PROXIES is ${value}` : undefined
    },
  },
  attack('X-Forwarded-For from an untrusted peer, without a warning of doctor', {}, async (target) => {
    await target.postFrom('203.0.113.9', '/otp/send', {})
    return (await doctorWarning(/x-forwarded-for/i, target.env)) ? undefined : 'doctor reports nothing'
  }),
]

const hosts: readonly Attack[] = [
  attack(
    'DNS rebinding: /outbox and /admin with the Host of another site',
    { ADMIN_PASSWORD_HASH: passwordHash },
    async (target) => {
      const paths = [
        '/outbox',
        '/outbox/messages',
        '/outbox/outbox.js',
        '/admin',
        '/admin/login',
        '/admin/link',
      ]
      const names = [
        `evil.example:${target.url.port}`,
        'localhost.evil.example',
        '127.0.0.1.evil.example',
        '',
      ]
      const tries = paths.flatMap((path) =>
        names.map(async (host) => {
          const { status } = await rawGet(target, path, { host })
          return status === 404 || status === 400 ? undefined : `${path} with Host "${host}": ${status}`
        }),
      )
      const own = await rawGet(target, '/outbox/messages', { host: `localhost:${target.url.port}` })
      return anyOf([
        ...(await Promise.all(tries)),
        own.status === 200 ? undefined : `with localhost: ${own.status}`,
      ])
    },
  ),
  attack(
    'the outbox of a server that listens beyond loopback, without OUTBOX_TOKEN',
    { HOST: '0.0.0.0', SMS_PLAIN: 'discard' },
    async (target) => {
      const statuses = await Promise.all(
        ['/outbox', '/outbox/messages'].map(async (path) => (await rawGet(target, path)).status),
      )
      await target.stop()
      return anyOf([
        statuses.includes(200) ? `/outbox answers ${statuses}` : undefined,
        hasWarned(target.lines, /outbox/i) ? undefined : 'serve logs no warning',
      ])
    },
  ),
  {
    title: 'the outbox with a wrong OUTBOX_TOKEN',
    async play() {
      await using target = await startTarget({
        HOST: '0.0.0.0',
        OUTBOX_TOKEN: 'token-of-the-outbox-0123456789abcdef',
      })
      const get = async (authorization: string) =>
        (await rawGet(target, '/outbox/messages', { authorization })).status
      const [right, wrong] = [
        await get(`Bearer token-of-the-outbox-0123456789abcdef`),
        await get('Bearer token-of-the-outbox'),
      ]
      const query = await rawGet(target, '/outbox/messages?token=wrong')
      return anyOf([
        right === 200 ? undefined : `the right token: ${right}`,
        wrong === 200 ? 'a wrong token: 200' : undefined,
        query.status === 200 ? 'a wrong ?token=: 200' : undefined,
      ])
    },
  },
  {
    title: 'the API key of the demo, known to all',
    async play() {
      const [key, other] = await Promise.all([demoKey(), demoKey()])
      return key === other ? `each demo has the key ${key}` : undefined
    },
  },
]

const configuration: readonly Attack[] = [
  attack('825 appIds of 254 KB', {}, async (target) => {
    const sends = async (from: number, to: number) => {
      const answers = new Set<string>()
      for (let index = from; index < to; index++)
        answers.add(verdict(await target.post('/otp/send', { appId: `${index}`.padEnd(254_000, 'x') })))
      return [...answers].join(', ')
    }
    // From here on a failure is not even counted.
    await sends(0, 300)
    const before = memoryOf(target.child)
    const answers = await sends(300, 1125)
    const grown = Math.round(memoryOf(target.child) - before)
    return anyOf([
      answers === '429 rate_limited' ? undefined : `answers ${answers}`,
      grown < 100 ? undefined : `${grown} MB more memory`,
    ])
  }),
  attack(
    'an appId with a colon in APP_CREDENTIALS, without a warning',
    { APP_CREDENTIALS: JSON.stringify({ 'shop:eu': 'key' }) },
    async (target) => {
      const doctor = await doctorWarning(/APP_CREDENTIALS.*colon|colon.*APP_CREDENTIALS|shop:eu/i, target.env)
      await target.stop()
      return anyOf([
        hasWarned(target.lines, /APP_CREDENTIALS|shop:eu/) ? undefined : 'serve logs no warning',
        doctor ? undefined : 'doctor reports nothing',
      ])
    },
  ),
  ...['86400', '601'].map((OTP_TTL_SECONDS) => ({
    title: `codes with a long lifetime, OTP_TTL_SECONDS=${OTP_TTL_SECONDS}`,
    play: () => unlessRefused('OTP_TTL_SECONDS', { OTP_TTL_SECONDS }),
  })),
  attack(
    'FAILURE_BUDGET_PER_DAY=0, without a warning of doctor',
    { FAILURE_BUDGET_PER_DAY: '0' },
    async (target) => {
      const warning = await doctorWarning(/FAILURE_BUDGET_PER_DAY/, target.env)
      return warning ? undefined : 'doctor reports nothing'
    },
  ),
]

const http: readonly Attack[] = [
  attack('JSON answers that a browser may store or take for something else', {}, async (target) => {
    const answers = {
      '/health': await target.get('/health'),
      '/platform/brands': await target.get('/platform/brands'),
      '/integrations/catalog': await target.get('/integrations/catalog'),
      '/outbox/messages': await target.get('/outbox/messages'),
      'an unknown path': await target.get('/nothing'),
      'a wrong method': await target.get('/otp/send'),
      'a send': await target.post('/otp/send', { phone }),
      'a wrong key': await target.post('/otp/verify', { apiKey: 'wrong' }),
    }
    return anyOf(
      Object.entries(answers).flatMap(([what, { headers }]) => [
        headers.get('x-content-type-options') === 'nosniff' ? undefined : `${what} lacks nosniff`,
        headers.get('cache-control')?.includes('no-store') ? undefined : `${what} lacks no-store`,
      ]),
    )
  }),
  attack(
    'dot segments and encoded dots around the prefix rules of a proxy',
    { ADMIN_PASSWORD_HASH: passwordHash },
    async (target) => {
      const paths = [
        '/docs/%2e%2e/admin/login',
        '/docs/%2E%2e/admin/login',
        '/docs/.%2e/admin/login',
        '/x/../admin/login',
        '/./admin/login',
        '/%2e/admin/login',
        '/x/..%2fadmin/login',
        '/x\\..\\admin\\login',
        '/otp/../outbox/messages',
      ]
      const tries = paths.map(async (path) => {
        const { status } = await rawGet(target, path)
        return status === 404 || status === 400 ? undefined : `${path}: ${status}`
      })
      return anyOf(await Promise.all(tries))
    },
  ),
]

const supplyChain: readonly Attack[] = [
  {
    title: 'another base image under the same tag',
    async play() {
      const files = ['Dockerfile', 'compose.yml', 'compose.postgres.yml', 'kubernetes/litestream/sidecar.yml']
      const images = files.flatMap((file) =>
        Array.from(
          repositoryFile(`deploy/${file}`).matchAll(/^\s*(?:FROM (?:--\S+ )?|image: )(\S+)/gm),
          ([, image = '']) => `${file}: ${image}`,
        ),
      )
      // otpost's own image is built from these.
      const byTag = images.filter((image) => !/@sha256:[0-9a-f]{64}$|[ /]otpost(?::\S+)?$/.test(image))
      return byTag.length === 0 ? undefined : byTag.join('; ')
    },
  },
  {
    title: 'development packages and their scripts, installed by the demo',
    async play() {
      const { demo } = JSON.parse(repositoryFile('package.json')).scripts
      return /--production|--omit[= ]dev/.test(demo) ? undefined : demo
    },
  },
]

export const edgeAttacks = [...addresses, ...hosts, ...configuration, ...http, ...supplyChain]
