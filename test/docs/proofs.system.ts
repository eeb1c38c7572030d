import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createHmac, createPublicKey, generateKeyPairSync, sign } from 'node:crypto'
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createProofs } from '../../src/adapters/crypto/proofs.ts'
import { createTestApp, credentials, type TestApp, temporaryFolder } from '../support/app.ts'
import { root } from './pages.ts'

// Design D55: each sample in docs/api, and two more libraries, accept the proofs of a server and no altered one.

setDefaultTimeout(240_000)

const [oldKey, newKey] = ['the-old-secret-of-32-bytes-or-more', 'the-new-secret-of-32-bytes-or-more']
const folder = temporaryFolder()
const phone = '+1 202 555 0143'
const email = 'pat@example.com'

let app: TestApp
let url: string
/** Of the server. */
let proof: string
let claims: { readonly iat: number }

beforeAll(async () => {
  app = await createTestApp({
    PORT: '0',
    SECRET_KEY: `${newKey},${oldKey}`,
    SMS_COOLDOWN_SECONDS: '0',
    PHONE_LIMIT_PER_MINUTE: '100',
  })
  // The clock of the programs.
  app.clock.now = Date.now()
  url = app.app.listen().origin
  const transaction = { amount: '1250.50', currency: 'INR', payee: 'City Water' }
  proof = await provenBy({ phone }, { purpose: 'payment', transaction })
  claims = JSON.parse(decoded(proof.split('.')[1]))
})
afterAll(async () => {
  await app.close()
  folder.remove()
})

async function provenBy(recipient: { phone: string } | { email: string }, binding = {}): Promise<string> {
  const [to = ''] = Object.values(recipient)
  const channel = 'email' in recipient ? 'EMAIL' : 'SMS'
  await app.post('/otp/send', { ...recipient, ...binding, channel })
  const { body } = await app.post('/otp/verify', {
    ...recipient,
    ...binding,
    otp: await app.lastCode(to),
    proof: true,
  })
  return body.proof
}

// --- The programs --------------------------------------------------------------------------------------------------

const samples = join(root, 'docs/api')
const programs = join(root, 'test/docs/proofs')

function prints(...command: string[]): boolean {
  return Bun.which(command[0] ?? '') !== null && Bun.spawnSync(command).exitCode === 0
}

const python = ['python3', '/usr/bin/python3']
const withPyJwt = python.find((each) => prints(each, '-c', 'import jwt, cryptography; jwt.PyJWKClient'))
const withJwcrypto = python.find((each) => prints(each, '-c', 'import jwcrypto'))
const hasCryptJwt = prints('perl', '-MCrypt::JWT', '-e', '')
/** Debian 12 has version 4. */
const goPath = '/usr/share/gocode'
const hasGoJwt = Bun.which('go') && existsSync(`${goPath}/src/github.com/golang-jwt/jwt`)
/** A copy of firebase/php-jwt. Debian 12 has none. */
const phpJwt = prints('php', '-r', 'exit(extension_loaded("sodium") ? 0 : 1);')
  ? process.env.PHP_JWT
  : undefined
/** The JAR files of jose4j and slf4j-api, as a class path. Debian 12 has no jose4j. */
const jose4j = Bun.which('java') ? process.env.JOSE4J_CLASS_PATH : undefined

const checkers: readonly (readonly [library: string, needs: string, prepare: false | (() => string[])])[] = [
  ['jose', 'node', Bun.which('node') !== null && (() => ['node', join(samples, 'proof.mjs')])],
  ['PyJWT', 'python3-jwt', withPyJwt !== undefined && (() => [withPyJwt, join(samples, 'proof.py')])],
  ['golang-jwt', 'golang-github-golang-jwt-jwt-dev', Boolean(hasGoJwt) && builtGo],
  ['firebase/php-jwt', 'PHP_JWT', phpJwt !== undefined && (() => ['php', ...phpFiles(phpJwt)])],
  [
    'jose4j',
    'JOSE4J_CLASS_PATH',
    jose4j !== undefined && (() => ['java', '-cp', jose4j, join(samples, 'Proof.java')]),
  ],
  [
    'jwcrypto',
    'python3-jwcrypto',
    withJwcrypto !== undefined && (() => [withJwcrypto, join(programs, 'with_jwcrypto.py')]),
  ],
  ['Crypt::JWT', 'libcrypt-jwt-perl', hasCryptJwt && (() => ['perl', join(programs, 'with_crypt_jwt.pl')])],
]

function builtGo(): string[] {
  const [source, program] = [join(folder.path, 'proof.go'), join(folder.path, 'proof')]
  writeFileSync(
    source,
    readFileSync(join(samples, 'proof.go'), 'utf8').replace('golang-jwt/jwt/v5', 'golang-jwt/jwt'),
  )
  const env = { PATH: process.env.PATH ?? '', HOME: folder.path, GO111MODULE: 'off', GOPATH: goPath }
  const { exitCode, stderr } = Bun.spawnSync(['go', 'build', '-o', program, source], { env })
  expect([exitCode, stderr.toString()]).toEqual([0, ''])
  return [program]
}

/** As Composer lays them out. */
function phpFiles(library: string): string[] {
  const packages = join(folder.path, 'vendor')
  cpSync(join(library, 'src'), join(packages, 'src'), { recursive: true })
  writeFileSync(
    join(packages, 'autoload.php'),
    '<?php spl_autoload_register(fn ($name) => require __DIR__ . "/src/" . basename(strtr($name, "\\\\", "/")) . ".php");',
  )
  return [join(samples, 'proof.php')]
}

/** What a program says of each proof. */
async function saidOf(command: readonly string[], proofs: readonly string[], settings: object = {}) {
  const child = Bun.spawn([...command], {
    cwd: folder.path,
    env: {
      PATH: process.env.PATH ?? '',
      HOME: folder.path,
      PYTHONDONTWRITEBYTECODE: '1',
      OTPOST_URL: url,
      OTPOST_APP_ID: credentials.appId,
      OTPOST_ISSUER: 'otpost',
      ...settings,
    },
    stdin: new Blob([proofs.map((each) => `${each}\n`).join('')]),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  const lines = out.split('\n').slice(0, -1)
  if (lines.length !== proofs.length) throw new Error(`${lines.length} of ${proofs.length} lines: ${err}`)
  return lines
}

// --- Proofs --------------------------------------------------------------------------------------------------------

function encoded(data: string | Uint8Array): string {
  return Buffer.from(data as Uint8Array).toString('base64url')
}

function decoded(text = ''): string {
  return Buffer.from(text, 'base64url').toString()
}

/** As the server signs them. */
function signed(changes: object): Promise<string> {
  const proofs = createProofs(newKey)
  return proofs.keyId().then((id) => proofs.sign({ ...claims, ...changes }, id))
}

/** Each bit of each part once. */
function withBitFlips(proof: string): string[] {
  const parts = proof.split('.').map((part) => Buffer.from(part, 'base64url'))
  return parts.flatMap((part, place) =>
    Array.from({ length: part.length * 8 }, (_, bit) => {
      const changed = Buffer.from(part)
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      return parts.map((each, at) => encoded(at === place ? changed : each)).join('.')
    }),
  )
}

/** Another signature or header, by an attacker who has the public keys and proofs. */
async function forgeries(): Promise<Record<string, string>> {
  const [head = '', payload = '', signature = ''] = proof.split('.')
  const header = JSON.parse(decoded(head))
  const { keys } = await (await fetch(`${url}/.well-known/jwks.json`)).json()
  const [own, previous] = keys
  const shown = createPublicKey({ key: own, format: 'jwk' })
  const attacker = generateKeyPairSync('ed25519').privateKey
  const stolen = encoded(JSON.stringify({ ...claims, to: '12025550199' }))
  const withHeader = (changes: object) => encoded(JSON.stringify({ ...header, ...changes }))
  const byAttacker = (changes: object, body = stolen) => {
    const text = `${withHeader(changes)}.${body}`
    return `${text}.${encoded(sign(null, Buffer.from(text), attacker))}`
  }
  const byHmac = (alg: string, secret: string | Buffer) => {
    const text = `${withHeader({ alg })}.${stolen}`
    const hash = alg.replace('HS', 'sha')
    return `${text}.${createHmac(hash, secret).update(text).digest('base64url')}`
  }
  const publicForms: Record<string, string | Buffer> = {
    bytes: Buffer.from(own.x, 'base64url'),
    text: own.x,
    JWK: JSON.stringify(own),
    PEM: shown.export({ format: 'pem', type: 'spki' }),
    DER: shown.export({ format: 'der', type: 'spki' }),
    nothing: '',
  }
  const attackersJwk = { ...createPublicKey(attacker).export({ format: 'jwk' }), alg: 'EdDSA', kid: own.kid }
  const other = (await provenBy({ email })).split('.')
  return {
    ...Object.fromEntries(
      ['none', 'None', 'NONE', 'nOnE'].flatMap((alg) => [
        [`${alg}, no signature`, `${withHeader({ alg })}.${stolen}.`],
        [`${alg}, two parts`, `${withHeader({ alg })}.${stolen}`],
        [`${alg}, the signature`, `${withHeader({ alg })}.${payload}.${signature}`],
      ]),
    ),
    ...Object.fromEntries(
      ['HS256', 'HS384', 'HS512'].flatMap((alg) =>
        Object.entries(publicForms).map(([form, secret]) => [
          `${alg} with the public key, ${form}`,
          byHmac(alg, secret),
        ]),
      ),
    ),
    ...Object.fromEntries(
      ['ES256', 'RS256', 'PS256', 'ES256K', 'Ed448', ''].map((alg) => [`alg ${alg}`, byAttacker({ alg })]),
    ),
    'the key of an attacker': byAttacker({}),
    'the key of an attacker, embedded': byAttacker({ jwk: attackersJwk }),
    'the key of an attacker, embedded, without kid': byAttacker({ jwk: attackersJwk, kid: undefined }),
    'the key of an attacker, by URL': byAttacker({
      jku: 'http://127.0.0.1:9/keys',
      x5u: 'http://127.0.0.1:9/keys',
    }),
    'an unknown kid': byAttacker({ kid: attackersJwk.x }),
    'kid of the previous key': `${withHeader({ kid: previous.kid })}.${payload}.${signature}`,
    'kid of a path': byAttacker({ kid: '../../../dev/null' }),
    'kid of another type': byAttacker({ kid: [own.kid] }),
    'no kid': `${withHeader({ kid: undefined })}.${payload}.${signature}`,
    'no alg': `${withHeader({ alg: undefined })}.${payload}.${signature}`,
    'the claims of another proof': `${head}.${other[1]}.${signature}`,
    'the signature of another proof': `${head}.${payload}.${other[2]}`,
    'no signature': `${head}.${payload}.`,
    'half a signature': `${head}.${payload}.${signature.slice(0, 43)}`,
    'the signature twice': `${head}.${payload}.${signature}${signature}`,
    'a signature of zeros': `${head}.${payload}.${encoded(Buffer.alloc(64))}`,
    'a fourth part': `${proof}.${signature}`,
    'no header': `.${payload}.${signature}`,
    'no claims': `${head}..${signature}`,
    JSON: JSON.stringify({ payload: stolen, protected: head, signature }),
    nothing: '',
    text: 'proof',
  }
}

/** Properly signed, for another purpose or no longer valid. */
async function unfit(): Promise<Record<string, string>> {
  const { iat } = claims
  const of: Record<string, object> = {
    'another app': { aud: 'another' },
    'no app': { aud: undefined },
    'another issuer': { iss: 'https://otp.example.com' },
    'no issuer': { iss: undefined },
    expired: { iat: iat - 700, exp: iat - 100 },
    'without expiry': { exp: undefined },
    'without ID': { jti: undefined },
    'without recipient': { to: undefined },
    'of a review number': { review: true },
  }
  const made = Object.entries(of).map(async ([what, changes]) => [what, await signed(changes)] as const)
  const ofNobody = createProofs('the-key-of-nobody-of-32-bytes-or-more')
  const foreign = await ofNobody.sign(claims, await ofNobody.keyId())
  return { ...Object.fromEntries(await Promise.all(made)), 'of another server': foreign }
}

test('each sample is run', () => {
  const files = [...new Bun.Glob('[Pp]roof*').scanSync({ cwd: samples })]
  expect(files.sort()).toEqual(['Proof.java', 'proof.go', 'proof.mjs', 'proof.php', 'proof.py'])
})

describe.each(checkers)('%s', (_library, needs, prepare) => {
  let command: string[]
  beforeAll(() => {
    if (prepare) command = prepare()
  })

  test.skipIf(!prepare)(
    `accepts proofs of the server, also under the previous key (needs ${needs})`,
    async () => {
      const previous = createProofs(oldKey)
      const earlier = await previous.sign({ ...claims, to: '12025550100' }, await previous.keyId())
      const given = [proof, earlier, await provenBy({ email: 'sam@example.com' }), await signed({})]
      const expected = ['12025550143', '12025550100', 'sam@example.com', '12025550143']
      expect(await saidOf(command, given)).toEqual(expected.map((to) => `proves ${to}`))
    },
  )

  test.skipIf(!prepare)(`refuses them for another app and another issuer (needs ${needs})`, async () => {
    expect(await saidOf(command, [proof], { OTPOST_APP_ID: 'another' })).toEqual(['refused'])
    expect(await saidOf(command, [proof], { OTPOST_ISSUER: 'another' })).toEqual(['refused'])
  })

  test.skipIf(!prepare)(`refuses every altered proof (needs ${needs})`, async () => {
    const altered = { ...(await forgeries()), ...(await unfit()) }
    const names = Object.keys(altered)
    const said = await saidOf(command, Object.values(altered))
    expect(names.filter((_, place) => said[place] !== 'refused')).toEqual([])
    const flipped = withBitFlips(proof)
    expect(flipped.length).toBeGreaterThan(3000)
    expect(new Set(await saidOf(command, flipped))).toEqual(new Set(['refused']))
  })
})
