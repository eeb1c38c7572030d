import { readFileSync } from 'node:fs'
import { verdict } from '../support/app.ts'

import { temporaryFolder } from '../support/folder.ts'
import { programEnv, programLine } from '../support/program.ts'
import { rawRequest } from '../support/raw-http.ts'
import {
  type Attack,
  attack,
  behindProxy,
  doctorWarns,
  hasWarned,
  refusedSetting,
  repositoryFile,
  statusOf,
  type Target,
} from './attack.ts'

type Socket = Bun.Socket<undefined>

const phone = '+44 7911 123456'
const token = 'token-of-the-outbox-0123456789abcdef'

/** Console pages and outbox pages. */
const pages = ['/outbox', '/outbox/messages', '/outbox/outbox.js', '/admin', '/admin/login', '/admin/link']

/** Other names of them. */
const detours = [
  ...['/docs/%2e%2e/admin/login', '/docs/%2E%2e/admin/login', '/docs/.%2e/admin/login', '/x/../admin/login'],
  ...[
    '/./admin/login',
    '/%2e/admin/login',
    '/x/..%2fadmin/login',
    '/x\\..\\admin\\login',
    '/otp/../outbox/messages',
  ],
]

/** Deployment files with images. */
const imageFiles = ['Dockerfile', 'compose.yml', 'compose.postgres.yml', 'kubernetes/litestream/sidecar.yml']

/** The API key that the demo prints, of a demo in a new folder. */
async function demoKey(): Promise<string> {
  const folder = temporaryFolder()
  const env = programEnv({ PORT: '0' })
  const child = Bun.spawn(programLine(['demo']), { cwd: folder.path, env, stdout: 'pipe', stderr: 'ignore' })
  try {
    let text = ''
    for await (const chunk of child.stdout) {
      text += new TextDecoder().decode(chunk)
      const [, key] = /'demo:([^']+)'/.exec(text) ?? []
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

/** Sends all but the last byte of a body on so many connections, and resolves to the answers that arrive meanwhile. */
async function stall({ url, post }: Target, connections: number, bodyBytes: number): Promise<string[]> {
  const head = `POST /notify HTTP/1.1\r\nHost: ${url.host}\r\nContent-Type: application/json\r\nContent-Length: ${bodyBytes}\r\n\r\n`
  const request = Buffer.from(head.padEnd(head.length + bodyBytes - 1, ' '))
  const answers: string[] = []
  const unsent = new Map<Socket, Buffer>()
  const write = (socket: Socket) => {
    const rest = unsent.get(socket) ?? request
    unsent.set(socket, rest.subarray(Math.max(0, socket.write(rest))))
  }
  const socket = {
    drain: write,
    data: (_: Socket, bytes: Buffer) => void answers.push(bytes.toString()),
  }
  for (let opened = 0; opened < connections; opened++) {
    write(await Bun.connect({ hostname: url.hostname, port: Number(url.port), socket }))
  }
  // The server has read what was written before this request.
  while ([...unsent.values()].some(({ length }) => length > 0)) await Bun.sleep(10)
  await post('/otp/verify', {})
  return answers
}

export const edgeAttacks: readonly Attack[] = [
  ...['0.0.0.0/0', '::/0', '10.0.0.0/8,::/0'].map((networks) =>
    refusedSetting('X-Forwarded-For from anywhere', 'TRUSTED_PROXIES', networks),
  ),
  {
    title: 'X-Forwarded-For from any pod of the Kubernetes files',
    play(check) {
      const [, value = ''] =
        /TRUSTED_PROXIES: (.*)/.exec(repositoryFile('deploy/kubernetes/base/otpost.yml')) ?? []
      const isBroad = value.split(',').some((network) => Number(/\/(\d+)/.exec(network)?.[1] ?? 32) < 16)
      check(!isBroad, `TRUSTED_PROXIES is ${value}`)
    },
  },
  attack('X-Forwarded-For from an untrusted peer, without a warning of doctor', {}, async (target, check) => {
    await target.postFrom('203.0.113.9', '/otp/send', {})
    check(await doctorWarns(target, /x-forwarded-for/i), 'doctor reports nothing')
  }),
  attack('DNS rebinding: pages with the Host of another site', {}, async (target, check) => {
    const { port } = target.url
    for (const path of pages) {
      for (const host of [`evil.example:${port}`, 'localhost.evil.example', '127.0.0.1.evil.example', '']) {
        const status = await statusOf(target, path, { host })
        check([404, 400].includes(status), `${path} with Host "${host}": ${status}`)
      }
    }
    const own = await statusOf(target, '/outbox/messages', { host: `localhost:${port}` })
    check(own === 200, `with localhost: ${own}`)
  }),
  attack(
    'DNS rebinding: the metrics of METRICS_PORT with the Host of another site',
    { METRICS_PORT: '0' },
    async (target, check) => {
      const { url = '' } = target.lines
        .map((line) => JSON.parse(line))
        .find(({ msg }) => msg === 'serving metrics')
      const port = new URL(url).port
      const scrape = (host: string) => rawRequest(new URL(url), 'GET /metrics', [`Host: ${host}:${port}`])
      for (const host of ['evil.com', '127.0.0.1.evil.com', 'evil.example']) {
        const { status } = await scrape(host)
        check(status === 404, `${host}: ${status}`)
      }
      for (const host of ['127.0.0.1', '10.1.2.3', 'otpost']) {
        const { status } = await scrape(host)
        check(status === 200, `the scraper with ${host}: ${status}`)
      }
    },
  ),
  attack('two Host headers, of which a proxy reads one', {}, async ({ url }, check) => {
    for (const hosts of [
      ['localhost', 'evil.example'],
      ['evil.example', 'localhost'],
    ]) {
      const headers = hosts.map((host) => `Host: ${host}`)
      const { status } = await rawRequest(url, 'GET /health', headers)
      check(status === 400, `${hosts}: ${status}`)
    }
  }),
  attack('bodies of 256 KiB that are slow to parse', {}, async (target, check) => {
    for (const text of [
      '['.repeat(262_144),
      '{"a":'.repeat(50_000),
      '{"appId":"\\\\\\"[",'.concat('"a":[{'.repeat(40_000)),
      JSON.stringify(Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`k${index}`, 1]))),
      JSON.stringify({ a: Array.from({ length: 15_000 }, (_, index) => ({ [`k${index}`]: [] })) }),
    ]) {
      const { status, body } = await target.request('POST', '/notify', {
        headers: { 'content-type': 'application/json' },
        body: text,
      })
      check(status === 400 && /nested/.test(body.message), `${status} ${body.message}`)
    }
  }),
  attack(
    '200 forged delivery reports, to fill the log',
    {
      PUBLIC_URL: 'http://localhost:3000',
      SMS_PLAIN: 'kannel',
      KANNEL_URL: 'http://127.0.0.1:9',
      KANNEL_USERNAME: 'u',
      KANNEL_PASSWORD: 'p',
      KANNEL_FROM: 'Otpost',
    },
    async (target, check) => {
      for (let count = 0; count < 200; count++) await target.get('/callbacks/kannel/forged?type=1')
      await target.stop()
      const { length } = target.lines.filter((line) => line.includes('a delivery report was rejected'))
      check(length >= 1 && length <= 3, `${length} warnings`)
    },
  ),
  attack(
    '60 integration requests from one /48, each from another /64',
    behindProxy,
    async (target, check) => {
      let accepted = 0
      for (let network = 1; network <= 60; network++) {
        const fields = { companyName: 'C', contactName: 'N', contactEmail: 'c@example.com', brandName: 'B' }
        const { status } = await target.postFrom(
          `2001:db8:7:${network.toString(16)}::1`,
          '/integrations/requests',
          fields,
        )
        if (status === 201) accepted++
      }
      check(accepted === 50, `${accepted} are accepted`)
    },
  ),
  attack(
    'secrets of one byte, without a warning',
    {
      SMS_PLAIN: 'webhook',
      SMS_WEBHOOK_URL: 'http://127.0.0.1:9',
      SMS_WEBHOOK_SECRET: 'x',
      ALERT_WEBHOOK_URL: 'http://127.0.0.1:9',
      ALERT_WEBHOOK_SECRET: 'x',
      OUTBOX_TOKEN: 'x',
      METRICS_TOKEN: 'x',
      APP_CREDENTIALS: '{"shop":"x"}',
    },
    async (target, check) => {
      const names = [
        'SMS_WEBHOOK_SECRET',
        'ALERT_WEBHOOK_SECRET',
        'OUTBOX_TOKEN',
        'METRICS_TOKEN',
        'APP_CREDENTIALS',
      ]
      for (const name of names)
        check(
          await doctorWarns(target, new RegExp(`${name}.*shorter than`)),
          `doctor does not report ${name}`,
        )
      for (const name of names)
        check(await hasWarned(target, new RegExp(`${name}.*shorter than`)), `serve does not warn of ${name}`)
    },
  ),
  attack(
    'the outbox beyond loopback, without OUTBOX_TOKEN',
    { HOST: '0.0.0.0', SMS_PLAIN: 'discard' },
    async (target, check) => {
      for (const path of ['/outbox', '/outbox/messages']) {
        const status = await statusOf(target, path)
        check(status !== 200, `${path}: ${status}`)
      }
      check(await hasWarned(target, /outbox/i), 'serve logs no warning')
    },
  ),
  attack(
    'the outbox with a wrong OUTBOX_TOKEN',
    { HOST: '0.0.0.0', OUTBOX_TOKEN: token },
    async (target, check) => {
      const read = (authorization: string, query = '') =>
        statusOf(target, `/outbox/messages${query}`, { authorization })
      check((await read(`Bearer ${token}`)) === 200, 'the right one is not accepted')
      check((await read(`Bearer ${token.slice(1)}`)) !== 200, 'it is accepted')
      check((await read('', '?token=wrong')) !== 200, 'it is accepted in the URL')
    },
  ),
  {
    title: 'the API key of the demo, known to all',
    async play(check) {
      const [key, other] = await Promise.all([demoKey(), demoKey()])
      check(key !== other, `each demo has the key ${key}`)
    },
  },
  attack('825 appIds of 254 KB, to fill the memory', {}, async (target, check) => {
    const send = async (index: number) => {
      const answer = await target.post('/notify', { appId: `${index}`.padEnd(254_000, 'x') })
      check([403, 429].includes(answer.status), verdict(answer))
    }
    // After 300 a failure is not even counted.
    for (let index = 0; index < 300; index++) await send(index)
    const before = memoryOf(target.child)
    for (let index = 300; index < 1125; index++) await send(index)
    const grown = Math.round(memoryOf(target.child) - before)
    check(grown < 100, `${grown} MB more memory`)
  }),
  attack('3,000 request bodies of 256 KiB that stall, to fill the memory', {}, async (target, check) => {
    const answers = await stall(target, 3000, 256 * 1024)
    const megabytes = Math.round(memoryOf(target.child))
    check(megabytes < 300, `${megabytes} MB of memory`)
    const isBusy = (answer: string) => /^HTTP\/1.1 503 .*retry-after: \d.*"unavailable"/is.test(answer)
    check(answers.length > 2500 && answers.every(isBusy), `${answers.length} answers: ${answers[0]}`)
    const code = await target.post('/otp/send', { brandId: 'acme', phone })
    check(code.status === 200, `a code: ${verdict(code)}`)
  }),
  attack(
    'an appId with a colon in APP_CREDENTIALS, without a warning',
    { APP_CREDENTIALS: '{"shop:eu":"key"}' },
    async (target, check) => {
      check(
        await doctorWarns(target, /APP_CREDENTIALS.*colon|colon.*APP_CREDENTIALS|shop:eu/i),
        'doctor reports nothing',
      )
      check(await hasWarned(target, /APP_CREDENTIALS|shop:eu/), 'serve logs no warning')
    },
  ),
  refusedSetting('codes with a long lifetime', 'OTP_TTL_SECONDS', '86400'),
  refusedSetting('codes with a long lifetime', 'OTP_TTL_SECONDS', '601'),
  attack(
    'no failure budget, without a warning of doctor',
    { FAILURE_BUDGET_PER_DAY: '0' },
    async (target, check) => {
      check(await doctorWarns(target, /FAILURE_BUDGET_PER_DAY/), 'doctor reports nothing')
    },
  ),
  attack(
    'JSON answers that a browser may store or take for something else',
    {},
    async ({ get, post }, check) => {
      const answers = [
        ...[
          '/health',
          '/platform/brands',
          '/integrations/catalog',
          '/outbox/messages',
          '/unknown',
          '/otp/send',
        ].map(get),
        ...[{ phone }, { apiKey: 'wrong' }].map((fields) => post('/otp/send', fields)),
      ]
      for (const { headers, status, body } of await Promise.all(answers)) {
        const what = `${status} ${JSON.stringify(body).slice(0, 60)}`
        check(headers.get('x-content-type-options') === 'nosniff', `no nosniff: ${what}`)
        check(headers.get('cache-control')?.includes('no-store') === true, `no no-store: ${what}`)
      }
    },
  ),
  attack('dot segments around the prefix rules of a proxy', {}, async (target, check) => {
    for (const path of detours) {
      const status = await statusOf(target, path)
      check([404, 400].includes(status), `${path}: ${status}`)
    }
  }),
  {
    title: 'another base image under the same tag',
    play(check) {
      for (const file of imageFiles) {
        const images = repositoryFile(`deploy/${file}`).matchAll(/^\s*(?:FROM (?:--\S+ )?|image: )(\S+)/gm)
        for (const [, image = ''] of images) {
          // otpost's own image is built from these.
          const isOwn = /^otpost$|\/otpost:/.test(image)
          check(isOwn || /@sha256:[0-9a-f]{64}$/.test(image), `${file}: ${image}`)
        }
      }
    },
  },
  {
    title: 'development packages and their scripts, installed by the demo',
    play(check) {
      const { demo } = JSON.parse(repositoryFile('package.json')).scripts
      check(/--production|--omit[= ]dev/.test(demo), demo)
    },
  },
]
