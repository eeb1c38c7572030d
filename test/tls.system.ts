import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { connect, type PeerCertificate } from 'node:tls'
import { run } from '../release/run.ts'
import { codeIn, temporaryFolder } from './support/app.ts'
import { freePorts } from './support/ports.ts'
import { programEnv, programLine } from './support/program.ts'
import { makeCertificate, outputLog } from './support/run.ts'
import { otpost } from './support/server.ts'

// https without a proxy: certificates of a real ACME server (Pebble), and files that another program renews.

setDefaultTimeout(120_000)

const needed = ['openssl', 'pebble', 'pebble-challtestsrv'].filter((name) => !Bun.which(name))
const why = needed.length > 0 ? ` (needs ${needed.join(', ')})` : ''
const domain = 'otp.example.test'
const folder = temporaryFolder()
const here = (...path: string[]) => join(folder.path, ...path)
const ending = new AsyncDisposableStack()
afterAll(async () => {
  await ending.disposeAsync()
  folder.remove()
})

/** A self-signed certificate for a name, with its key. */
function certificate(name: string, place: string): { cert: string; key: string } {
  mkdirSync(place, { recursive: true })
  const [cert, key] = [join(place, 'certificate.pem'), join(place, 'key.pem')]
  const names = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name},IP:127.0.0.1`]
  makeCertificate(cert, key, ...names)
  return { cert, key }
}

/** Of the domain, from 2020. */
function endedCertificate(place: string): void {
  certificate(domain, place)
  const config = `[ca]\ndefault_ca=c\n[c]\ndatabase=index\nnew_certs_dir=.\nrand_serial=yes\ndefault_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n[e]\nsubjectAltName=DNS:${domain}\n`
  writeFileSync(here('ca.conf'), config)
  writeFileSync(here('index'), '')
  const script = `openssl x509 -x509toreq -in "$1/certificate.pem" -signkey "$1/key.pem" -out request.pem &&
openssl ca -config ca.conf -batch -notext -selfsign -keyfile "$1/key.pem" -in request.pem -out "$1/certificate.pem" -extensions e -startdate 20200101000000Z -enddate 20200102000000Z`
  run(['sh', '-c', script, '-', place], folder.path)
}

function start(command: string[], env: Record<string, string>) {
  const child = Bun.spawn(command, { env, cwd: folder.path, stdout: 'pipe', stderr: 'pipe' })
  const { said, ended } = outputLog(child.stdout, child.stderr)
  const stop = async () => {
    child.kill()
    await ended
    return await child.exited
  }
  ending.defer(async () => void (await stop()))
  return { said, stop }
}

function presented(port: number): Promise<PeerCertificate> {
  const { promise, resolve, reject } = Promise.withResolvers<PeerCertificate>()
  const socket = connect({ host: '127.0.0.1', port, servername: domain, rejectUnauthorized: false }, () => {
    resolve(socket.getPeerCertificate())
    socket.destroy()
  })
  socket.once('error', reject)
  return promise
}

interface Trial {
  readonly settings: Record<string, string>
  readonly tlsPort: number
  readonly httpPort: number
}

async function trial(name: string): Promise<Trial> {
  const [port = 0, tlsPort = 0, httpPort = 0] = freePorts(3)
  const settings = programEnv({
    DATABASE_URL: `file:${here(name, 'otpost.db')}`,
    PORT: String(port),
    TLS_PORT: String(tlsPort),
    ACME_HTTP_PORT: String(httpPort),
    OUTBOX_TOKEN: 'a-token-of-the-test-that-is-long-enough',
  })
  return { settings, tlsPort, httpPort }
}

/** Sends a code over https, and verifies it. */
async function codeWorks({ settings, tlsPort }: Trial): Promise<void> {
  await otpost(['brand', 'put', 'acme', '--name', 'Acme'], settings)
  const { stdout } = await otpost(['app', 'issue', 'shop', '--brand', 'acme'], settings)
  const post = (path: string, fields: object) =>
    fetch(`https://127.0.0.1:${tlsPort}${path}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Basic ${btoa(`shop:${stdout.trim()}`)}`,
      },
      body: JSON.stringify({ brandId: 'acme', phone: '12025550143', ...fields }),
      tls: { rejectUnauthorized: false },
    })
  expect((await post('/otp/send', {})).status).toBe(200)
  const outbox = await otpost(['outbox'], settings)
  expect((await post('/otp/verify', { otp: codeIn(outbox.stdout) })).status).toBe(200)
}

test.skipIf(!Bun.which('openssl'))('a renewed certificate file is used without a restart', async () => {
  const own = await trial('files')
  const { cert, key } = certificate('first.example.test', here('files'))
  const files = { TLS_CERT_FILE: cert, TLS_KEY_FILE: key }
  const server = start(programLine(['serve']), { ...own.settings, ...files })
  await server.said(/listening for https/)
  await server.said(/"msg":"listening"/)
  expect((await presented(own.tlsPort)).subject.CN).toBe('first.example.test')
  await codeWorks(own)

  // Half of a change is not used.
  const second = certificate('second.example.test', here('second'))
  renameSync(second.cert, cert)
  await server.said(/does not belong to the certificate/)
  expect((await presented(own.tlsPort)).subject.CN).toBe('first.example.test')
  renameSync(second.key, key)
  await server.said(/listening for https/)
  expect((await presented(own.tlsPort)).subject.CN).toBe('second.example.test')
  expect(await server.stop()).toBe(0)
})

test.skipIf(!Bun.which('openssl'))('wrong files and a port in use are one line', async () => {
  const own = await trial('wrong')
  const { cert, key } = certificate('a.example.test', here('a'))
  const other = certificate('b.example.test', here('b'))
  // Like a file that this user may not read, also for root.
  const loop = here('loop.pem')
  symlinkSync(loop, loop)
  const serve = (TLS_CERT_FILE: string, TLS_KEY_FILE: string) =>
    otpost(['serve'], { ...own.settings, TLS_CERT_FILE, TLS_KEY_FILE })
  const remedy = 'correct the path, or let this user read it'
  for (const [files, problem] of [
    [[here('none.pem'), key], `TLS_CERT_FILE (${here('none.pem')}) cannot be read (ENOENT): ${remedy}`],
    [[cert, loop], `TLS_KEY_FILE (${loop}) cannot be read (ELOOP): ${remedy}`],
    [[cert, cert], `TLS_KEY_FILE (${cert}) has no private key in PEM`],
    [[cert, other.key], `TLS_KEY_FILE (${other.key}) does not belong to the certificate in ${cert}`],
  ] as const)
    expect(await serve(...files)).toMatchObject({ code: 78, stderr: expect.stringContaining(problem) })
  const taken = Bun.serve({ port: own.httpPort, hostname: '::', fetch: () => new Response() })
  ending.defer(() => taken.stop(true))
  const inUse = await otpost(['serve', '--domain', domain], own.settings)
  expect(inUse).toMatchObject({ code: 1 })
  expect(inUse.stderr).toContain(`ACME_HTTP_PORT ${own.httpPort} on :: is already in use`)
})

describe.skipIf(needed.length > 0)(`ACME${why}`, () => {
  let own: Trial
  let env: Record<string, string>
  let server: ReturnType<typeof start>
  let challenges: string

  beforeAll(async () => {
    own = await trial('acme')
    const [acme = 0, management = 0, dns = 0, dnsApi = 0] = freePorts(4)
    const { cert, key } = certificate('localhost', here('pebble'))
    const pebble = {
      listenAddress: `127.0.0.1:${acme}`,
      managementListenAddress: `127.0.0.1:${management}`,
      certificate: cert,
      privateKey: key,
      httpPort: own.httpPort,
      tlsPort: own.tlsPort,
    }
    writeFileSync(here('pebble.json'), JSON.stringify({ pebble }))
    // Its other services are off. At first the domain has no IP address.
    const off = ['-http01', '', '-https01', '', '-tlsalpn01', '', '-defaultIPv4', '', '-defaultIPv6', '']
    const names = start(
      ['pebble-challtestsrv', '-dns01', `127.0.0.1:${dns}`, '-management', `127.0.0.1:${dnsApi}`, ...off],
      {},
    )
    challenges = `http://127.0.0.1:${dnsApi}`
    await names.said(/Starting management server/)
    const ca = start(['pebble', '-config', here('pebble.json'), '-dnsserver', `127.0.0.1:${dns}`], {
      PEBBLE_VA_NOSLEEP: '1',
      PEBBLE_WFE_NONCEREJECT: '0',
    })
    await ca.said(/ACME directory available/)
    env = {
      ...own.settings,
      ACME_DIRECTORY_URL: `https://localhost:${acme}/dir`,
      NODE_EXTRA_CA_CERTS: cert,
    }
  })

  test('a domain without a DNS record is an error in the log, and the server serves PORT', async () => {
    server = start(programLine(['serve', '--domain', domain]), env)
    const [, remedy] = await server.said(/"remedy":"([^"]+)","msg":"no certificate by ACME: /)
    expect(remedy).toBe(`Create a DNS record (A or AAAA) that leads from ${domain} to this machine.`)
    expect((await fetch(`http://127.0.0.1:${own.settings.PORT}/health`)).status).toBe(200)
    expect(await server.stop()).toBe(0)
  })

  test('a certificate comes from the ACME server, and a code is sent over https', async () => {
    await fetch(`${challenges}/add-a`, {
      method: 'POST',
      body: JSON.stringify({ host: `${domain}.`, addresses: ['127.0.0.1'] }),
    })
    server = start(programLine(['serve', '--domain', domain]), env)
    await server.said(/listening for https/)
    const { issuer, subjectaltname } = await presented(own.tlsPort)
    expect(issuer.CN).toStartWith('Pebble Intermediate CA')
    expect(subjectaltname).toBe(`DNS:${domain}`)
    const files = ['account.json', 'certificate.pem', 'key.pem'].map((name) =>
      here('acme/otpost.db.tls', name),
    )
    expect(files.map((file) => (statSync(file).mode & 0o777).toString(8))).toEqual(['600', '600', '600'])
    await codeWorks(own)
    expect((await fetch(`http://127.0.0.1:${own.httpPort}/otp/send`, { method: 'POST' })).status).toBe(403)
    expect(await server.stop()).toBe(0)
  })

  test('a certificate that ends soon is renewed without a restart, with the same account', async () => {
    const place = here('acme/otpost.db.tls')
    const account = readFileSync(join(place, 'account.json'), 'utf8')
    endedCertificate(place)
    server = start(programLine(['serve', '--domain', domain]), env)
    await server.said(/listening for https/)
    await server.said(/listening for https/)
    expect((await presented(own.tlsPort)).issuer.CN).toStartWith('Pebble Intermediate CA')
    expect(readFileSync(join(place, 'account.json'), 'utf8')).toBe(account)
    expect(existsSync(join(place, 'key.pem.new'))).toBe(false)
    expect(await server.stop()).toBe(0)
  })
})
