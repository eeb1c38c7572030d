import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { type OtpostEvent, verifyEvent } from 'otpost/client'
import { OtpostTestError, sandboxSettingNames, startOtpost, type TestOtpost } from '../client/testing.ts'
import { sandboxSettings } from '../src/commands/sandbox.ts'
import { otherThan, temporaryFolder } from './support/app.ts'
import { programEnv, programLine } from './support/program.ts'
import { startSandbox } from './support/sandbox.ts'
import { otpost as command } from './support/server.ts'

const phone = '+1 202 555 0143'
const ending = new AsyncDisposableStack()
afterAll(() => ending.disposeAsync())

/** Resolves when the server at a URL has closed a connection with half a request, or has exited already. */
async function hungUp(url: string): Promise<void> {
  const { hostname, port } = new URL(url)
  const { promise, resolve } = Promise.withResolvers<void>()
  await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      // The kernel may not report a connection without data to the process.
      open: (socket) => void socket.write('GET /hea'),
      data: () => {},
      close: () => resolve(),
      error: () => resolve(),
    },
  }).catch(() => resolve())
  return promise
}

/** Whether a server answers there. */
function answers(url: string): Promise<boolean> {
  return fetch(`${url}/health`).then(
    () => true,
    () => false,
  )
}

describe('otpost sandbox', () => {
  test('prints its URL in one line, sends nothing, writes nothing, and ends after a signal', async () => {
    const folder = temporaryFolder()
    ending.defer(() => folder.remove())
    const child = Bun.spawn(programLine(['sandbox', '--brand', 'Blue-Bikes', '--brand', 'acme']), {
      cwd: folder.path,
      env: programEnv({
        NODE_ENV: 'production',
        HOST: '0.0.0.0',
        DATABASE_URL: 'file:data/other.db',
        SMS_PLAIN: 'twilio',
        SMTP_URL: 'smtp://127.0.0.1:1',
        OTP_SMS_MODE: 'template',
        LOG_LEVEL: 'info',
        SMS_COOLDOWN_SECONDS: '90',
        PHONE_DEFAULT_REGION: 'IN',
      }),
      stdout: 'pipe',
      stderr: 'pipe',
    })
    ending.defer(() => child.kill('SIGKILL'))
    const stderr = new Response(child.stderr).text()
    let stdout = ''
    const decoder = new TextDecoder()
    const reader = child.stdout.getReader()
    while (!stdout.includes('\n')) {
      const { value } = await reader.read()
      if (!value) throw new Error(`the sandbox ended: ${await stderr}`)
      stdout += decoder.decode(value)
    }
    const { url, appId, apiKey, brandIds, outboxUrl, ...rest } = JSON.parse(stdout)
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    expect({ appId, apiKey, brandIds, outboxUrl, rest }).toEqual({
      appId: 'sandbox',
      apiKey: 'otp_sandbox_key',
      brandIds: ['blue-bikes', 'acme'],
      outboxUrl: `${url}/outbox`,
      rest: {},
    })

    const post = async (path: string, fields: object) => {
      const body = JSON.stringify({ appId, apiKey, brandId: 'blue-bikes', ...fields })
      const answer = await fetch(`${url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      })
      return { status: answer.status, retryAfter: answer.headers.get('retry-after') }
    }
    // A national number, interpreted in the default region.
    expect((await post('/otp/send', { phone: '098123 45678', loginId: 'jo' })).status).toBe(200)
    const tooSoon = await post('/otp/send', { phone: '+91 98123 45678' })
    expect(tooSoon.status).toBe(429)
    expect(Number(tooSoon.retryAfter)).toBeWithin(31, 91)
    expect((await post('/otp/send', { channel: 'EMAIL', email: 'jo@example.com' })).status).toBe(200)
    for (const templateKey of ['ORDER_PLACED', 'OUT_FOR_DELIVERY', 'ORDER_DELIVERED']) {
      const variables = {
        customerName: 'Jo',
        orderId: 'A-1',
        orderDate: '2026-01-02',
        deliveryDateTime: '2026-01-03T10:00',
      }
      const order = { channel: 'SMS', to: ['+91 98123 45678'], templateKey, variables }
      expect((await post('/notify', order)).status).toBe(200)
    }
    const outbox = await (await fetch(`${outboxUrl}/messages`)).json()
    expect(outbox.messages.map(({ to }: { to: string }) => to)).toEqual([
      '919812345678',
      'jo@example.com',
      ...Array(3).fill('919812345678'),
    ])
    expect(outbox.messages[0].text).toMatch(/^\d{6} is your Blue Bikes verification code for jo\./)
    expect((await fetch(outboxUrl)).headers.get('content-type')).toStartWith('text/html')

    child.kill('SIGTERM')
    const more = await reader.read()
    expect([await child.exited, more.done]).toEqual([0, true])
    expect(readdirSync(folder.path)).toEqual([])
    const log = await stderr
    expect(JSON.parse(log.trimEnd().split('\n').at(-1) ?? '')).toMatchObject({ msg: 'stopped' })
    expect(log).not.toContain('9812345678')
  })

  test('rejects invalid slugs, settings and URLs with a clear error', async () => {
    const [slug, setting, url] = await Promise.all([
      command(['sandbox', '--brand', 'two words']),
      command(['sandbox'], { OTP_TTL_SECONDS: 'soon' }),
      command(['sandbox', '--webhook', 'http://shop.example']),
    ])
    expect([slug.code, slug.stdout]).toEqual([2, ''])
    expect(slug.stderr).toContain('The slug must have')
    expect([setting.code, setting.stdout]).toEqual([78, ''])
    expect(setting.stderr).toContain('OTP_TTL_SECONDS must be')
    expect([url.code, url.stdout]).toEqual([2, ''])
    expect(url.stderr).toContain('The URL must begin with https://')
  })
})

describe('otpost/testing', () => {
  let otpost: TestOtpost
  beforeAll(async () => {
    otpost = await startSandbox({
      brandIds: ['acme', 'globex'],
      settings: { SMS_COOLDOWN_SECONDS: 0, PHONE_LIMIT_PER_MINUTE: 100 },
    })
    ending.defer(() => otpost.stop())
  })

  test('has the settings of the sandbox', () => {
    expect(Object.keys(sandboxSettings).sort()).toEqual([...sandboxSettingNames].sort())
  })

  test('starts otpost and returns the codes of its client', async () => {
    const { client, brandId, brandIds } = otpost
    expect([brandId, brandIds]).toEqual(['acme', ['acme', 'globex']])
    expect(await client.send({ phone })).toMatchObject({ success: true })
    const otp = await otpost.codeFor('12025550143')
    expect(await client.verify({ phone, otp: otherThan(otp) })).toMatchObject({ error: 'mismatch' })
    expect(await client.verify({ phone, otp })).toMatchObject({ success: true })
    const email = 'Jo@example.com'
    const brand = { brandId: 'globex' }
    expect(
      await client.send({ channel: 'EMAIL', email, businessName: 'Shop 123456', ...brand }),
    ).toMatchObject({ success: true })
    const mailed = await otpost.codeFor('jo@EXAMPLE.com')
    expect(await client.verify({ email, otp: mailed, ...brand })).toMatchObject({ success: true })
  })

  test('sends events to a server of the test', async () => {
    const received = Promise.withResolvers<OtpostEvent>()
    const server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: async (request) => {
        received.resolve(verifyEvent(await request.text(), request.headers, other.webhookSecret ?? ''))
        return new Response()
      },
    })
    await using other = await startSandbox({ webhookUrl: server.url.href })
    await other.client.send({ phone, reference: 'login-1042' })
    const otp = await other.codeFor(phone)
    for (let time = 0; time < 3; time++) await other.client.verify({ phone, otp: otherThan(otp) })
    expect(await received.promise).toMatchObject({ type: 'otp.locked', data: { reference: 'login-1042' } })
    expect(otpost.webhookSecret).toBeUndefined()
    await server.stop(true)
  })

  test('waits for the code of a resend, and returns no code twice', async () => {
    const to = '+1 202 555 0150'
    const waiting = otpost.codeFor(to, { timeoutMs: 30_000 })
    await otpost.client.send({ phone: to })
    const first = await waiting
    const next = otpost.codeFor(to, { timeoutMs: 30_000 })
    // A message without a code is ignored, even if it has six digits.
    await otpost.client.notify({ channel: 'SMS', to: [to], message: '654321 is what you have won' })
    await otpost.client.resend({ phone: to })
    const second = await next
    expect(await otpost.client.verify({ phone: to, otp: second })).toMatchObject({ success: true })

    const messages = await otpost.messagesTo(to)
    expect(
      messages.map(({ channel, to, brandId, text }) => [channel, to, brandId, text.slice(0, 6)]),
    ).toEqual([
      ['SMS', '12025550150', 'acme', first],
      ['SMS', '12025550150', 'acme', '654321'],
      ['SMS', '12025550150', 'acme', second],
    ])
    // The newer of two codes is returned: the other one is not valid any more.
    await otpost.client.send({ phone: to })
    await otpost.client.resend({ phone: to })
    const third = await otpost.codeFor(to)
    expect((await otpost.messagesTo(to)).at(-1)?.text).toStartWith(third)
    const error = await problemOf(otpost.codeFor(to, { timeoutMs: 1 }))
    expect(error).toMatch(
      /No code arrived within 1 ms\..* for this recipient: 5 .*already returned\); for others: \d+\.$/,
    )
    expect(error).not.toMatch(/\d{6}/)
  })

  test('returns the newest code, or the one of the given brand', async () => {
    const to = '+1 202 555 0160'
    const send = async (brandId: string) => {
      expect(await otpost.client.send({ phone: to, brandId })).toMatchObject({ success: true })
      return (await otpost.messagesTo(to)).at(-1)?.text.slice(0, 6) ?? ''
    }
    const [acme, globex] = [await send('acme'), await send('globex')]
    expect([await otpost.codeFor(to), await otpost.codeFor(to)]).toEqual([globex, acme])
    const [third, fourth] = [await send('acme'), await send('globex')]
    expect(await otpost.codeFor(to, { brandId: 'acme' })).toBe(third)
    expect(await problemOf(otpost.codeFor(to, { brandId: 'acme', timeoutMs: 1 }))).toContain(
      'No code arrived',
    )
    expect(await otpost.codeFor(to)).toBe(fourth)
  })

  test('reports a server that does not answer, after a limited time', async () => {
    const { promise, resolve } = Promise.withResolvers<number>()
    // A stand-in for otpost: it prints its URL, and answers nothing.
    using deaf = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: () => resolve(1) } })
    const url = `http://127.0.0.1:${deaf.port}`
    const said = JSON.stringify({ url, appId: 'a', apiKey: 'k', outboxUrl: `${url}/outbox` })
    await using other = await startOtpost({ command: ['sh', '-c', `echo '${said}'; exec cat >/dev/null`] })
    const problems = Promise.all([
      problemOf(other.codeFor(phone, { timeoutMs: 1 })),
      problemOf(other.messagesTo(phone)),
    ])
    expect(await promise).toBe(1)
    expect(await problems).toEqual([
      expect.stringContaining('does not answer'),
      expect.stringContaining('does not answer'),
    ])
  })

  test('rejects an invalid recipient', async () => {
    expect(await problemOf(otpost.messagesTo('nobody'))).toContain('a phone number or an e-mail address')
    expect(await problemOf(otpost.codeFor('nobody'))).toContain('a phone number or an e-mail address')
  })

  test('stops it, and reports afterwards that it has ended', async () => {
    const other = await startSandbox()
    expect(await answers(other.url)).toBe(true)
    await Promise.all([other.stop(), other.stop()])
    expect(await answers(other.url)).toBe(false)
    expect(await problemOf(other.codeFor(phone))).toContain('otpost does not answer: it ended with 0')
    expect(await other.client.send({ phone })).toMatchObject({ success: false, error: 'unreachable' })
  })

  test('reports why it could not start', async () => {
    const start = (options: Parameters<typeof startOtpost>[0]) => problemOf(startOtpost(options))
    const PORT = new URL(otpost.url).port
    const [none, unfit, other, silent, brand, setting, port] = await Promise.all([
      start({ command: 'otpost-that-is-nowhere' }),
      start({ command: import.meta.path }),
      start({ command: ['sh', '-c', 'echo hello'] }),
      start({ command: ['sh', '-c', 'exec cat'], startTimeoutMs: 1 }),
      startSandbox({ brandIds: ['no slug'] }).then(String, String),
      start({ settings: { SMS_PLAIN: 'twilio' } as object }),
      startSandbox({ settings: { PORT } }).then(String, String),
    ])
    expect(none).toMatch(
      /The program otpost-that-is-nowhere was not found\. Put otpost on the PATH, .*OTPOST_BINARY/,
    )
    expect(unfit).toContain('cannot be run (EACCES)')
    expect(other).toContain('The program is not otpost')
    expect(silent).toContain('it does not listen after 1 ms')
    expect(brand).toMatch(/it ended with 2\n.*The slug must have/s)
    expect(setting).toContain('SMS_PLAIN would have no effect')
    // At once, even with open standard input, and without the values of unknown settings.
    expect(port).toMatch(
      /it ended with 1\n.*Port \d+ on 127\.0\.0\.1 is already in use\. Stop the program that listens there or choose another port with --port or PORT\.$/,
    )
  })

  test.skipIf(!Bun.which('node'))(
    Bun.which('node')
      ? 'works on Node, where otpost ends with a test run that is killed, and with one that forgets it'
      : 'The test helpers are not tested on Node: there is none.',
    async () => {
      const folder = temporaryFolder()
      ending.defer(() => folder.remove())
      const built = await Bun.build({
        entrypoints: [join(import.meta.dir, '../client/testing.ts')],
        target: 'node',
        outdir: folder.path,
      })
      expect(built.logs).toEqual([])
      const run = (how: 'is killed' | 'forgets it') => {
        const code = `
        import { startOtpost } from '${join(folder.path, 'testing.js')}'
        const otpost = await startOtpost({ command: ${JSON.stringify(programLine([]))}, startTimeoutMs: 100_000 })
        const coming = otpost.codeFor('${phone}', { timeoutMs: 30_000 })
        const sent = await otpost.client.send({ phone: '${phone}' })
        const verified = await otpost.client.verify({ phone: '${phone}', otp: await coming })
        console.log(JSON.stringify({ url: otpost.url, sent: sent.success, verified: verified.success }))
        ${how === 'is killed' ? 'setInterval(() => {}, 1000)' : ''}`
        return Bun.spawn(['node', '--input-type=module', '--eval', code], {
          env: programEnv(),
          stdout: 'pipe',
          stderr: 'pipe',
        })
      }
      const killed = run('is killed')
      ending.defer(() => killed.kill('SIGKILL'))
      for await (const chunk of killed.stdout) {
        const { url, ...did } = JSON.parse(new TextDecoder().decode(chunk))
        expect(did).toEqual({ sent: true, verified: true })
        const hangsUp = hungUp(url)
        // The server accepts connections in order: an answer on a later one means that it has accepted this one.
        expect(await answers(url)).toBe(true)
        killed.kill('SIGKILL')
        await hangsUp
        expect(await answers(url)).toBe(false)
        break
      }

      const forgetful = run('forgets it')
      expect([await forgetful.exited, await new Response(forgetful.stderr).text()]).toEqual([0, ''])
      const { url } = await new Response(forgetful.stdout).json()
      await hungUp(url)
      expect(await answers(url)).toBe(false)
    },
  )
})

/** The message of a rejection. */
async function problemOf(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(error).toBeInstanceOf(OtpostTestError)
  return String(error)
}
