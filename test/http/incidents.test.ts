import { afterEach, describe, expect, test } from 'bun:test'
import { createTestApp, type TestApp } from '../support/app.ts'
import { signedIn } from '../support/console.ts'
import { accepted, policyOf, testProvider } from '../support/policy.ts'

// What goes on, as operators see it on the overview: each test has an incident.

const apps: TestApp[] = []
const one = testProvider('one')

async function start(env: Readonly<Record<string, string>> = {}): Promise<TestApp> {
  const app = await createTestApp({ GUARD: 'record', ...env }, { smsRoutes: { plain: [one] } })
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
