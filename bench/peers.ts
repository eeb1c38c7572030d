import { writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import packageJson from '../package.json'
import { type Bench, freePort, type Server } from './servers.ts'
import { http, send, verifyWrong, type Workload, workload } from './workloads.ts'

/** A program that sends and verifies codes. */
export interface Contestant {
  readonly name: string
  /** Starts it with an empty database. */
  start(bench: Bench): Promise<Server>
  readonly send: Workload
  readonly guess: Workload
  /** Bounds on what otpost ÷ this one should be, and on the p99 at half of the rate. */
  readonly aims?: { readonly rate?: number; readonly p99?: number; readonly halfP99Ms?: number }
}

export const otpost: Contestant = {
  name: 'otpost',
  start: async (bench) => bench.otpost({ databaseFile: await bench.database('peers') }),
  send,
  guess: verifyWrong,
  aims: { halfP99Ms: 10 },
}

/** What this machine can start, and sentences for what it cannot. */
export interface Contestants {
  readonly all: readonly Contestant[]
  readonly leftOut: readonly string[]
}

export function contestants(): Contestants {
  const { all, leftOut } = gateways()
  return { all: [otpost, betterAuth(), ...all], leftOut }
}

export function gateways(): Contestants {
  const binary = process.env.OTPGATEWAY
  const reasons = [
    ...(binary === undefined ? ['OTPGATEWAY does not name its binary'] : []),
    ...(Bun.which('redis-server') === null ? ['redis-server is not installed'] : []),
  ]
  if (binary === undefined || reasons.length > 0)
    return { all: [], leftOut: [`otpgateway was left out: ${reasons.join(', ')}.`] }
  return { all: otpgateways(resolve(binary)), leftOut: [] }
}

/**
 * otpgateway with the settings of its sample configuration. It has no provider that discards messages. Its requests have
 * no `to`, so that it creates and stores a code, and neither renders nor delivers a message.
 */
function otpgateways(binary: string): Contestant[] {
  const namespace = 'bench'
  const secret = 'key-of-the-benchmark'
  const authorization = { Authorization: `Basic ${btoa(`${namespace}:${secret}`)}` }
  const form = (line: string, body: string) =>
    http(line, body, 'application/x-www-form-urlencoded', authorization)
  const requests = {
    send: workload('`PUT /api/otp/ID`', form('PUT /api/otp/PHONE_NUMBER', 'provider=sms'), 200),
    guess: workload('`POST /api/otp/ID`, wrong code', form('POST /api/otp/PHONE_NUMBER', 'otp=123456'), 400, {
      says: 'Incorrect OTP',
      to: 'recipients',
    }),
  }
  const start = (name: string, redisArgs: readonly string[]) => async (bench: Bench) => {
    // redis-server reads a space as the end of the path.
    const folder = bench.emptyFolder(name.replaceAll(/\W+/g, '-'))
    const redisPort = freePort()
    const redis = await bench.start(
      ['redis-server', '--port', String(redisPort), '--bind', '127.0.0.1', '--dir', folder, ...redisArgs],
      { port: redisPort, isUp: accepts },
    )
    const port = freePort()
    const configFile = join(folder, 'config.toml')
    writeFileSync(configFile, configOf(port, redisPort, namespace, secret))
    const gateway = await bench.start([binary, '--config', configFile], {
      port,
      healthPath: '/api/health',
      logFile: join(folder, 'log'),
      logsErrors: true,
      cwd: dirname(binary),
    })
    return {
      ...gateway,
      pids: [...gateway.pids, ...redis.pids],
      stop: async () => {
        await redis.stop('SIGKILL')
        return gateway.stop('SIGKILL')
      },
    }
  }
  const otpgateway = (
    name: string,
    settings: string,
    aims: NonNullable<Contestant['aims']> = {},
  ): Contestant => ({
    name: `otpgateway, ${name}`,
    start: start(`otpgateway, ${name}`, ['--save', '', ...settings.split(' ')]),
    ...requests,
    aims,
  })
  return [
    otpgateway('no persistence', '--appendonly no', { rate: 1.3, p99: 1 }),
    otpgateway('AOF every second', '--appendonly yes --appendfsync everysec'),
    otpgateway('AOF always', '--appendonly yes --appendfsync always', { rate: 2 }),
  ]
}

/** Redis speaks no HTTP. */
async function accepts({ hostname, port }: URL): Promise<boolean> {
  const socket = await Bun.connect({ hostname, port: Number(port), socket: { data: () => undefined } })
  socket.end()
  return true
}

const configOf = (port: number, redisPort: number, namespace: string, secret: string) => `[app]
address = "127.0.0.1:${port}"
server_timeout = "5s"
enable_debug_logs = false
otp_ttl = 300
otp_max_attempts = 5
otp_max_generate = 3
root_url = "http://localhost:${port}"

[store.redis]
host = "127.0.0.1"
port = "${redisPort}"

[auth.bench]
namespace = "${namespace}"
secret = "${secret}"

[webhooks.sms]
enabled = true
url = "http://127.0.0.1:9"
channel_name = "SMS"
address_name = "Mobile number"
max_otp_len = 6
`

/** better-auth's phone-number plugin: the same runtime, SQLite driver and durability. It knows no applications and brands. */
function betterAuth(): Contestant {
  const post = (path: string, fields: object) =>
    http(`POST /api/auth/phone-number/${path}`, JSON.stringify({ phoneNumber: '+PHONE_NUMBER', ...fields }))
  return {
    name: `better-auth ${packageJson.devDependencies['better-auth']}`,
    start: (bench) => {
      const data = bench.emptyFolder('better-auth')
      return bench.start([process.execPath, join(import.meta.dir, 'better-auth.ts')], {
        env: { DATABASE_FILE: join(data, 'better-auth.db') },
        healthPath: '/api/auth/ok',
      })
    },
    send: workload('`POST /phone-number/send-otp`', post('send-otp', {}), 200),
    guess: workload('`POST /phone-number/verify`, wrong code', post('verify', { code: '123456' }), 400, {
      says: 'INVALID_OTP',
      to: 'recipients',
    }),
  }
}
