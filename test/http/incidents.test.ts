import { afterEach, describe, expect, test } from 'bun:test'
import { notSetUp } from '../../src/domain/accounts/account-changes.ts'
import { addAccount } from '../support/accounts.ts'
import { codeIn, createTestApp, type TestApp } from '../support/app.ts'
import { signedIn } from '../support/console.ts'
import { accepted, policyOf, testProvider } from '../support/policy.ts'

// What goes on, as operators see it on the overview: each test has an incident.

const apps: TestApp[] = []
const one = testProvider('one')

async function start(env: Readonly<Record<string, string>> = {}): Promise<TestApp> {
  const app = await createTestApp({ GUARD: 'record', ...env }, { phoneRoutes: { plain: [one] } })
  apps.push(app)
  return app
}
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()))
  one.sent.length = 0
  one.answer(() => accepted)
})

const textOf = (html: string) => html.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ')

describe('an attack that a budget stops', () => {
  const attack = async (app: TestApp, codes: number, seconds: number) => {
    const answers = []
    for (let index = 0; index < codes; index++) {
      app.advance(seconds)
      answers.push(await app.post('/otp/send', { phone: `+9989371${index % 8}${1000 + index}` }))
    }
    for (const answer of answers) await app.eventsOf(answer)
    return answers.map(({ status }) => status)
  }

  test('is an incident for as long as it goes on, and the lift of the budget warns of it', async () => {
    const app = await start({ PHONE_LIMIT_PER_HOUR: '100', GLOBAL_LIMIT_PER_MINUTE: '1000' })
    await policyOf(app).budget('server', '30')
    const statuses = await attack(app, 60, 2)
    expect(statuses.at(-1)).toBe(429)
    for (const minutes of [1, 90]) {
      await attack(app, 90, (60 * minutes) / 90)
      const visitor = await signedIn(app)
      const overview = textOf((await visitor.get('/admin')).html)
      expect(overview).toContain('Possible SMS pumping to Uzbekistan (+9989371…)')
      expect(overview).toContain('rejected by a budget')
      expect(overview).toContain('Only a budget stops such codes.')
      expect(overview).toContain('Do not lift the budget before you have stopped the SMS pumping.')
      expect((await visitor.get('/admin/guard')).html).toContain('rejected by a budget only')
      const money = (await visitor.get('/admin/money')).html
      expect(/data-confirm="Lift server [^"]*Possible SMS pumping to Uzbekistan/.test(money)).toBe(true)
    }
  })
})

/** The first line, what to do, and the lines below it. */
async function firstLines(app: TestApp) {
  const { html } = await (await signedIn(app)).get('/admin')
  const [, verdict = ''] = /<section class="verdict(.*?)<\/section>/s.exec(html) ?? []
  const [, heading = ''] = /<h2[^>]*>(.*?)<\/h2>/s.exec(verdict) ?? []
  const lines = [...html.matchAll(/<p class="standing">(.*?)<\/p>/gs)].map(([, line = '']) => line)
  const told = (part: string) =>
    textOf(part)
      .replaceAll(/ ([:.,])/g, '$1')
      .trim()
  return { heading: told(heading), verdict, words: told(verdict), lines: lines.map(told), html }
}

describe('the first line is short, and has the change that helps most', () => {
  test('a provider that fails in part is paused by it, and its code is explained', async () => {
    const [twilio, two] = [testProvider('twilio'), testProvider('two')]
    const app = await createTestApp({ GUARD: 'off' }, { phoneRoutes: { plain: [twilio, two] } })
    apps.push(app)
    for (let index = 0; index < 20; index++) {
      twilio.answer(() => (index % 2 === 0 ? { kind: 'retryable', reason: '20503' } : accepted))
      app.advance(5)
      await app.eventsOf(await app.post('/otp/send', { phone: `120255503${10 + index}` }))
    }
    const { heading, verdict, words, lines, html } = await firstLines(app)
    expect(heading).toMatch(
      /^Provider twilio fails in part since ..:..: other providers sent its messages\.$/,
    )
    expect(words).toContain('It answers 20503: the provider could not accept the message at that time.')
    expect(verdict).toContain('action="/admin/providers/pause"')
    expect(verdict).toContain('name="name" value="twilio"')
    expect(html).not.toContain('action="/admin/providers/pause"><input type="hidden" name="name" value="two"')
    expect(lines).toEqual(['The SMS pumping guard is off: it sends every code.'])
    const visitor = await signedIn(app)
    await visitor.post('/admin/providers/pause', { name: 'twilio', duration: '1h' })
    const paused = await firstLines(app)
    expect(paused.heading).toStartWith('All well')
    expect(paused.lines[1]).toMatch(/^twilio is paused until ..:..\.$/)
  })

  test('a budget that is used up says who spent it, without codes and seconds', async () => {
    const app = await start({ GUARD: 'off', GLOBAL_LIMIT_PER_MINUTE: '1000' })
    await policyOf(app).prices('1 0.05')
    await policyOf(app).budget('server', '0.5')
    for (let index = 0; index < 20; index++) {
      app.advance(2)
      await app.eventsOf(await app.post('/otp/send', { phone: `120255503${10 + index}` }))
    }
    const { heading, words, verdict } = await firstLines(app)
    expect(heading).toMatch(/^The server's budget is used up(?: since ..:..)?: 10 people got no message\.$/)
    expect(words).toContain('App shop spent 0.50 EUR on SMS to United States. Lift the budget')
    expect(verdict).toContain('href="/admin/money"')
    expect(words).not.toMatch(/429|:\d\d:\d\d/)
    const past = await (await signedIn(app)).get('/admin?from=2025-12-31T00:00Z&until=2025-12-31T06:00Z')
    expect(textOf(past.html)).toContain('1 incident goes on now')
    expect(past.html).not.toContain('class="verdict')
  })

  test('a blocked attack is a line, until the block ends', async () => {
    const app = await start({ GUARD: 'record', GLOBAL_LIMIT_PER_MINUTE: '1000' })
    const visitor = await signedIn(app)
    const send = async (from: number) => {
      for (let index = from; index < from + 30; index++) {
        app.advance(2)
        await app.eventsOf(await app.post('/otp/send', { phone: `+9989371${index % 8}${1000 + index}` }))
      }
    }
    await send(0)
    const { heading, verdict } = await firstLines(app)
    expect(heading).toMatch(/^SMS pumping to Uzbekistan(?: since ..:..)?: no person misses a message\.$/)
    expect(verdict).toContain('Block +9989371')
    await visitor.post('/admin/guard', { action: 'block', prefix: '+9989371', duration: '12h' })
    await send(30)
    const blocked = await firstLines(app)
    expect(blocked.heading).toStartWith('All well')
    expect(blocked.lines).toEqual([
      expect.stringMatching(
        /^Codes to \+9989371… \(Uzbekistan\) are blocked until [-0-9: ]+: 30 denied in the last hour\.$/,
      ),
    ])
  })
})

describe('an outage of all providers', () => {
  test('is the first line: since when, how many people, why, and what to do; it can be acknowledged until it ends', async () => {
    const two = testProvider('two')
    const app = await createTestApp({ GUARD: 'off' }, { phoneRoutes: { plain: [one, two] } })
    apps.push(app)
    const visitor = await signedIn(app)
    const send = async (phone: string) => {
      app.advance(10)
      await app.eventsOf(await app.post('/otp/send', { phone }))
    }
    const headline = async () => {
      const { html } = await visitor.get('/admin')
      const [, tone = '', words = ''] =
        /<section class="verdict (\w+)".*?<h2[^>]*>(.*?)<\/h2>/s.exec(html) ?? []
      return `${tone}: ${textOf(words)
        .replaceAll(/ ([:.,])/g, '$1')
        .trim()}`
    }
    await send('12025550100')
    expect(await headline()).toBe('good: All well: 1 code sent, 0 verified in the last five minutes.')
    const refused = { kind: 'rejected', scope: 'account', reason: 'HTTP 401' } as const
    one.answer(() => refused)
    two.answer(() => refused)
    app.advance(60)
    const since = new Date(app.clock.now).toISOString().slice(11, 16)
    // One person tries twice.
    for (const end of [1, 2, 3, 4, 5, 6, 1]) await send(`1202555020${end}`)
    expect(await headline()).toBe(`bad: No SMS since ${since}: 6 people got none.`)
    expect(textOf((await visitor.get('/admin')).html)).toContain(
      'Both providers answer HTTP 401. Check the credentials of one and two.',
    )
    // Longer than the minutes that decide whether a provider fails.
    for (const end of [10, 11, 12, 13, 14, 15, 16, 17, 18]) {
      app.advance(240)
      await send(`120255502${end}`)
      expect(await headline()).toBe(`bad: No SMS since ${since}: ${end - 3} people got none.`)
    }
    await visitor.post('/admin/incidents/acknowledge', { about: 'sms' })
    expect(await headline()).toBe('warn: Acknowledged: No SMS.')
    expect(textOf((await visitor.get('/admin')).html)).toContain('acknowledged by a sign-in link (')
    one.answer(() => accepted)
    app.advance(900)
    await send('12025550300')
    expect(await headline()).not.toContain('No SMS')
    one.answer(() => refused)
    app.advance(1200)
    for (const end of [1, 2, 3, 4, 5, 6]) await send(`1202555040${end}`)
    expect(await headline()).toStartWith('bad: No SMS since')
  })
})

test('silence is an incident and sends an alert, against the same hours of the days before', async () => {
  const app = await start()
  const { eventLog, alerts } = app.app.context
  const hourMs = 3_600_000
  const hour = app.clock.now - (app.clock.now % hourMs)
  for (const day of [1, 2, 3])
    for (const later of [0, 1, 2])
      eventLog.count(
        hour + later * hourMs - 24 * day * hourMs,
        { kind: 'send', channel: 'SMS', brand: 'acme', provider: 'one', detail: 'ok' },
        60,
      )
  await eventLog.flush()
  await app.eventsOf(await app.post('/otp/send', { phone: '12025550100' }))
  const visitor = await signedIn(app)
  const check = async () => {
    app.app.alerts.tick()
    await app.app.alerts.idle()
    return (await alerts.ofKinds(['calls.silent'], 0)).map(({ text }) => JSON.parse(text).state)
  }
  app.advance(600)
  expect(textOf((await visitor.get('/admin')).html)).toContain('All well')
  expect(await check()).toEqual([])
  app.advance(1500)
  expect(textOf((await (await signedIn(app)).get('/admin')).html)).toMatch(
    /No calls since \d\d:\d\d ?\. 15 minutes usually have about 15\./,
  )
  expect(await check()).toEqual(['started'])
  await app.eventsOf(await app.post('/otp/send', { phone: '12025550101' }))
  app.advance(31)
  expect(await check()).toEqual(['started', 'ended'])
})

test('codes that providers accept and few people verify are an incident, with the people who wait', async () => {
  const app = await start({ GLOBAL_LIMIT_PER_MINUTE: '1000' })
  const hour = app.clock.now - (app.clock.now % 3_600_000)
  const { eventLog } = app.app.context
  const count = (kind: 'sms' | 'sms-verified', day: number, codes: number) =>
    eventLog.count(
      hour - day * 86_400_000,
      { kind, channel: 'SMS', brand: '', provider: '', detail: 'US' },
      codes,
    )
  for (const day of [1, 2, 3]) {
    count('sms', day, 100)
    count('sms-verified', day, 88)
  }
  await eventLog.flush()
  const send = async (index: number, isVerified: boolean) => {
    app.advance(24)
    const phone = `+1212${220 + index}${1000 + index}`
    await app.eventsOf(await app.post('/otp/send', { phone }))
    if (!isVerified) return
    await app.eventsOf(await app.post('/otp/verify', { phone, otp: codeIn(one.sent.at(-1)?.text) }))
  }
  app.advance(60)
  for (let index = 0; index < 20; index++) await send(index, true)
  expect((await firstLines(app)).heading).toStartWith('All well')
  app.advance(60 - (app.clock.now % 60_000) / 1000)
  const since = new Date(app.clock.now).toISOString().slice(11, 16)
  for (let index = 20; index < 82; index++) await send(index, [25, 45, 65].includes(index))
  app.advance(420)
  const { heading, words, html } = await firstLines(app)
  expect(heading).toBe(
    `Codes are sent, but few are verified since ${since}: 3 of 62, usually 87%; 59 people wait.`,
  )
  expect(words).toContain('Send a test message to your own phone.')
  expect(html).not.toContain('SMS pumping to')
})

test('an overview without traffic leads through the first day, and can be dismissed', async () => {
  const app = await start()
  const visitor = await signedIn(app)
  const { html } = await visitor.get('/admin')
  const steps = [
    ...html.matchAll(
      /<li class="step"><span class="badge (?:good|quiet)">(done|to do).*?<(?:a href="([^"]*)"|strong)>([^<]*)/g,
    ),
  ]
  expect(steps.map(([, state, href = '', title]) => `${state}: ${title} ${href}`.trim())).toEqual([
    'done: Create a brand /admin/brands',
    'done: Create an app /admin/apps',
    'done: Connect a provider of SMS /admin/providers',
    'to do: Send a test message /admin/test',
    'to do: Limit the countries /admin/destinations',
    'to do: Import prices /admin/money#prices',
    'to do: Set a budget /admin/money',
    'to do: Invite a second owner /admin/operators',
    ...(html.includes('Make a backup') ? ['to do: Make a backup'] : []),
  ])
  await policyOf(app).budget('country:*', '50')
  const inUnits = (await visitor.get('/admin')).html
  expect(inUnits.match(/badge good">done/g)).toHaveLength(3)
  expect(textOf(inUnits)).toContain('Units are no money: import prices, then set it again.')
  await visitor.get('/admin/money')
  await visitor.post('/admin/money/prices', { prices: 'prefix,currency,price\n1,EUR,0.02' })
  await policyOf(app).budget('country:*', '50')
  const inMoney = (await visitor.get('/admin')).html
  expect(inMoney.match(/badge good">done/g)).toHaveLength(5)
  expect(textOf(inMoney)).toContain('50 EUR per day for each country.')
  await visitor.post('/admin/incidents/acknowledge', { about: 'first day' })
  expect((await visitor.get('/admin')).html).not.toContain('First day')
})

test('a server whose SMS reach no phone is not well, and the first day says why its steps are not done', async () => {
  const app = await createTestApp()
  apps.push(app)
  await addAccount(app, 'ana@example.com', 'owner')
  const { sessions } = app.app.context
  await sessions.change({ now: app.clock.now }, () => ({
    saveAccount: {
      ...notSetUp,
      id: 'ben',
      email: 'ben@example.com',
      role: 'owner',
      createdAt: app.clock.now,
    },
    entry: null,
  }))
  const visitor = await signedIn(app)
  await app.eventsOf(await app.post('/otp/send', { phone: '12025550100' }))
  const overview = textOf((await visitor.get('/admin')).html)
  expect(overview).not.toContain('All well')
  expect(overview).toContain('SMS reach no phone: SMS_PLAIN names no provider that delivers them.')
  expect(overview).toContain('to do Connect a provider of SMS')
  expect(overview).toContain(
    'Send a test message A message to the outbox reaches no phone, so it does not count.',
  )
  expect(overview).toContain('An owner is invited. The step is done when they have set up their account.')
  expect(textOf((await visitor.get('/admin/providers')).html)).toContain(
    'To connect a provider, set SMS_PLAIN to its name, set its variables, and restart the server.',
  )
})

test('thresholds decide what is an incident, and old acknowledgements are forgotten', async () => {
  const app = await start({ GUARD: 'off' })
  const visitor = await signedIn(app)
  const incidents = async () => textOf((await visitor.get('/admin')).html)
  for (let index = 0; index < 20; index++) {
    one.answer(() => (index % 3 === 0 ? { kind: 'retryable', reason: 'HTTP 503' } : accepted))
    app.advance(5)
    await app.eventsOf(await app.post('/otp/send', { phone: `120255503${10 + index}` }))
  }
  expect(await incidents()).toContain('HTTP 503')
  expect(await incidents()).not.toContain('All well')
  const unknown = await visitor.post('/admin/incidents/acknowledge', { about: 'provider two' })
  expect([unknown.status, textOf(unknown.html)]).toEqual([
    409,
    expect.stringContaining('There is no incident provider two now.'),
  ])
  expect((await visitor.post('/admin/incidents/acknowledge', { about: 'provider one' })).status).toBe(303)
  await visitor.post('/admin/incidents', {
    failedPercent: '90',
    silentMinutes: '0',
  })
  expect(await incidents()).toContain('All well')
  app.advance(91 * 86_400)
  const later = await signedIn(app)
  await later.post('/admin/incidents/acknowledge', { about: 'first day' })
  const { acknowledgements } = await app.app.context.policy.rows()
  expect(acknowledgements.map(({ about }) => about)).toEqual(['first day'])
})
