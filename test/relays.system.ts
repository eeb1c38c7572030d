import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Twilio } from 'twilio'
import { temporaryFolder } from './support/folder.ts'
import { certificates } from './support/postgres-tls.ts'
import { basic } from './support/relay.ts'
import { otpost, startServer, type TestServer } from './support/server.ts'

// Design D53: programs of others call the relays of a real server.

setDefaultTimeout(120_000)

const folder = temporaryFolder()
const ending = new AsyncDisposableStack()
let server: TestServer
/** In front of it, as Symfony calls no http. */
let proxy: ReturnType<typeof Bun.serve>

beforeAll(async () => {
  ending.defer(() => folder.remove())
  const env = { DATABASE_URL: `file:${join(folder.path, 'otpost.db')}` }
  const command = async (...args: string[]) => {
    const { code, stdout, stderr } = await otpost(args, env)
    expect([code, stderr]).toEqual([0, expect.any(String)])
    return Object.fromEntries(stdout.split('\n').map((line) => line.split(/: (.*)/s))) as Relay
  }
  server = await startServer(env)
  ending.defer(async () => void (await server.stop()))
  await command('brand', 'put', 'acme', '--name', 'Acme')
  await command('destination', 'set', 'GB', 'block')
  for (const kind of ['twilio', 'kratos', 'logto'] as const)
    relays[kind] = await command('relay', 'add', kind, '--kind', kind, '--brand', 'acme')
  proxy = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    tls: { cert: certificates.server, key: certificates.serverKey },
    fetch: (request) => {
      const { pathname, search } = new URL(request.url)
      return fetch(new URL(pathname + search, server.url), request)
    },
  })
  ending.defer(() => proxy.stop(true))
})
afterAll(() => ending.disposeAsync())

type Relay = Readonly<Record<'url' | 'user' | 'secret', string>>

const relays: Partial<Record<'twilio' | 'kratos' | 'logto', Relay>> = {}

function relay(kind: keyof typeof relays): Relay {
  const found = relays[kind]
  if (!found) throw new Error(`there is no relay ${kind}`)
  return found
}

async function textsTo(phone: string): Promise<string[]> {
  const { body } = await server.get(`/outbox/messages?to=${encodeURIComponent(phone)}`)
  return body.messages.map(({ text }: { readonly text: string }) => text)
}

/** Sends by the SDK, which has no setting for another host. */
function sdk(token = relay('twilio').secret) {
  const client = new Twilio(relay('twilio').user, token)
  const { httpClient } = client
  const send = httpClient.request.bind(httpClient)
  httpClient.request = (options) =>
    send({ ...options, uri: options.uri.replace('https://api.twilio.com', server.url.origin) })
  return (to: string, body: string) => client.messages.create({ from: 'Acme', to, body })
}

test('the SDK of Twilio for Node sends codes and texts, and has the errors of Twilio', async () => {
  const create = sdk()

  const message = await create('+12025550101', '482913')
  expect([message.sid, message.status]).toEqual([expect.stringMatching(/^SM[0-9a-f]{32}$/), 'queued'])
  await create('+12025550101', 'Your parcel is at the door.')
  expect(await textsTo('+12025550101')).toEqual([
    expect.stringMatching(/Acme.*482913|482913.*Acme/s),
    'Your parcel is at the door.',
  ])
  await expect(create('+447400123456', '482913')).rejects.toMatchObject({ status: 400, code: 21408 })
  await expect(create('12', '482913')).rejects.toMatchObject({ status: 400, code: 21211 })
  await create('+12025550101', '482914')
  await create('+12025550101', '482915')
  await expect(create('+12025550101', '482916')).rejects.toMatchObject({ status: 429, code: 20429 })
  await expect(sdk('another')('+12025550102', '482913')).rejects.toMatchObject({ status: 401, code: 20003 })
})

const symfony = '/usr/share/php/Symfony/Component/Notifier/Bridge/Twilio/autoload.php'
const hasSymfony = existsSync(symfony)

test.skipIf(!hasSymfony)(
  `Symfony Notifier sends a code by its DSN${hasSymfony ? '' : ': not tried, apt-get install php-symfony-twilio-notifier php-symfony-http-client'}`,
  async () => {
    const authority = join(folder.path, 'authority.pem')
    writeFileSync(authority, certificates.authority)
    const { user, secret } = relay('twilio')
    const notify = async (phone: string, text: string, token = secret) => {
      const program = `<?php
        require '${symfony}';
        require '/usr/share/php/Symfony/Component/HttpClient/autoload.php';
        use Symfony\\Component\\Notifier\\Transport\\Dsn;
        use Symfony\\Component\\Notifier\\Message\\SmsMessage;
        use Symfony\\Component\\Notifier\\Bridge\\Twilio\\TwilioTransportFactory;
        $client = Symfony\\Component\\HttpClient\\HttpClient::create(['cafile' => '${authority}']);
        $factory = new TwilioTransportFactory(null, $client);
        $dsn = new Dsn('twilio://${user}:${token}@127.0.0.1:${proxy.port}?from=Acme');
        try {
          echo $factory->create($dsn)->send(new SmsMessage('${phone}', '${text}'))->getMessageId();
        } catch (Exception $e) {
          echo $e->getMessage();
        }`
      const child = Bun.spawn(['php'], { stdin: new Blob([program]), stdout: 'pipe', stderr: 'pipe' })
      return new Response(child.stdout).text()
    }
    expect(await notify('+12025550110', '482913')).toMatch(/^SM[0-9a-f]{32}$/)
    expect(await textsTo('+12025550110')).toEqual([expect.stringContaining('482913')])
    expect(await notify('+447400123456', '482913')).toContain('https://www.twilio.com/docs/errors/21408')
    expect(await notify('+12025550110', '482913', 'another')).toContain('errors/20003')
  },
)

const jsonnet = Bun.which('jsonnet')

test.skipIf(jsonnet === null)(
  `Kratos: the Jsonnet file makes the request that the relay reads${jsonnet ? '' : ': not tried, apt-get install jsonnet'}`,
  async () => {
    const file = join(import.meta.dir, '../examples/kratos/otpost.jsonnet')
    const { url, user, secret } = relay('kratos')
    const courier = async (context: object, password = secret) => {
      const line = ['jsonnet', '--tla-code', `ctx=${JSON.stringify(context)}`, file]
      const body = await new Response(Bun.spawn(line, { stdout: 'pipe' }).stdout).text()
      const headers = { 'content-type': 'application/json', authorization: basic(user, password) }
      return server.request('POST', new URL(url).pathname, { headers, body })
    }
    const to = '+12025550120'
    const login = {
      recipient: to,
      template_type: 'login_code_valid',
      body: 'Your login code is: 482913',
      template_data: { to, login_code: '482913', expires_in_minutes: 15, identity: { id: 'x' } },
    }
    expect((await courier(login)).status).toBe(200)
    const invalid = {
      recipient: to,
      template_type: 'verification_code_invalid',
      body: 'Someone asked to verify this number.',
      template_data: { to },
    }
    expect((await courier(invalid)).status).toBe(200)
    expect(await textsTo(to)).toEqual([
      expect.stringContaining('482913'),
      'Someone asked to verify this number.',
    ])
    expect((await courier(login, 'another')).status).toBe(401)
    const blocked = await courier({ ...login, recipient: '+447400123456' })
    expect([blocked.status, blocked.body.reason]).toEqual([400, 'destination'])
  },
)

interface Connector {
  sendMessage(message: object, config: object): Promise<{ readonly statusCode: number }>
}

/** The package has no types. */
async function connectorOf(name: string): Promise<Connector> {
  const { default: create }: { default: (context: object) => Promise<Connector> } = await import(name)
  return create({})
}

test('the connectors of Logto send codes by SMS and e-mail, and have the errors as text', async () => {
  const { url, secret } = relay('logto')
  const endpoint = new URL(new URL(url).pathname, server.url).href
  const [sms, mail] = await Promise.all(
    ['sms', 'email'].map((of) => connectorOf(`@logto/connector-http-${of}`)),
  )
  const message = { type: 'SignIn', payload: { code: '482913', locale: 'de-DE' }, ip: '203.0.113.7' }
  const sent = (by: Connector | undefined, to: string, password = secret, payload = message.payload) =>
    by?.sendMessage({ ...message, to, payload }, { endpoint, authorization: `Bearer ${password}` })
  expect(await sent(sms, '+12025550130')).toMatchObject({ statusCode: 200 })
  expect(await textsTo('+12025550130')).toEqual([expect.stringMatching(/482913.*Code/s)])
  expect(await sent(mail, 'foo@logto.io')).toMatchObject({ statusCode: 200 })
  expect(await textsTo('foo@logto.io')).toEqual([expect.stringContaining('482913')])
  await expect(sent(sms, '+447400123456')).rejects.toThrow('destination')
  await expect(sent(sms, '+12025550130', 'another')).rejects.toThrow('unauthorized')
  const withLink = { ...message.payload, code: '', link: 'https://app.example/invited' }
  await expect(sent(mail, 'foo@logto.io', secret, withLink)).rejects.toThrow('`code` is missing')
})
