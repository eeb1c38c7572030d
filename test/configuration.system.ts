import { afterAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from './support/folder.ts'
import { otpost, startServer } from './support/server.ts'

// Design D57: the configuration file in processes of their own.

const folder = temporaryFolder()
afterAll(() => folder.remove())

function file(name: string, text: string): string {
  const path = join(folder.path, name)
  writeFileSync(path, text)
  return path
}

const databaseOf = (name: string) => ({ DATABASE_URL: `file:${join(folder.path, name)}` })

/** Many entries that differ in each file, so that two runs overlap. */
function configuration(name: string): string {
  const brands = Array.from(
    { length: 20 },
    (_, index) => `  - slug: brand-${index}\n    displayName: ${name} ${index}`,
  )
  const budgets = Array.from(
    { length: 20 },
    (_, index) => `  - scope: brand:brand-${index}\n    period: day\n    amount: ${name.length + index}`,
  )
  const others = `texts:
  - slug: brand-0
    key: LOGIN_OTP
    text: "${name}: {{otp}}"
webhooks:
  - appId: till
    url: https://${name.length}.example/events
destinations:
  - rule: GB
    action: ${name.length > 4 ? 'allow' : 'monitor'}
relays:
  - name: login
    kind: logto
    brand: brand-${name.length}
prices: "prefix,currency,price\\n+44,EUR,0.0${name.length % 10}\\n"
`
  return `brands:\n${brands.join('\n')}\nbudgets:\n${budgets.join('\n')}\n${others}`
}

test('of two runs at once, one follows the other: the configuration is wholly that of one file', async () => {
  const files = ['Acme', 'Globex Corp'].map((name) => file(`${name}.yaml`, configuration(name)))
  const states: string[] = []
  for (const [index, path] of files.entries()) {
    const env = databaseOf(`alone-${index}.db`)
    await otpost(['migrate'], env)
    await otpost(['apply', path], env)
    states.push((await otpost(['config', 'export'], env)).stdout)
  }
  const env = databaseOf('race.db')
  await otpost(['migrate'], env)
  for (let round = 0; round < 3; round++) {
    const runs = await Promise.all(files.map((path) => otpost(['apply', path], env)))
    expect(runs.map(({ code, stderr }) => [code, stderr])).toEqual([
      [0, ''],
      [0, ''],
    ])
    expect(states).toContain((await otpost(['config', 'export'], env)).stdout)
  }
})

test('CONFIG_FILE is applied at the start of a server, whose log has no secret, and stops a start with a fault', async () => {
  const env = databaseOf('server.db')
  file('login.secret', 'a-secret-of-the-identity-system')
  const relay = 'relays:\n  - name: login\n    kind: logto\n    brand: acme\n'
  const text = `brands:\n  - slug: acme\n    displayName: Acme\nwebhooks:\n  - appId: till\n    url: https://till.example/events\n${relay}`
  const path = file('server.yaml', `${text}    secretFile: login.secret\n`)
  const server = await startServer({ ...env, CONFIG_FILE: path })
  expect((await server.get('/platform/brands')).body.brands).toEqual([
    { brandId: 'acme', displayName: 'Acme' },
  ])
  await server.stop()
  const log = server.lines.join('\n')
  expect(log).toContain('+ relays login')
  expect(log).not.toMatch(/whsec_|a-secret-of/)
  const { stdout } = await otpost(['doctor', '--json'], { ...env, CONFIG_FILE: path })
  expect(stdout).toContain('The configuration is that of')
  const without = file('without.yaml', text.replace('login', 'other'))
  const { code, stderr } = await otpost(['serve'], { ...env, PORT: '0', CONFIG_FILE: without })
  expect([code, stderr]).toEqual([1, expect.stringContaining('needs a secretFile')])
})

test('a server built by one file, by the API alone, and by commands alone have the same export', async () => {
  const prices = 'prefix,currency,price\n+44,EUR,0.04\n'
  const entries: readonly (readonly [
    part: string,
    action: string,
    fields: object,
    words: readonly string[],
  ])[] = [
    [
      'brands',
      'brand.put',
      { slug: 'acme', displayName: 'Acme' },
      ['brand', 'put', 'acme', '--name', 'Acme'],
    ],
    [
      'texts',
      'text.set',
      { slug: 'acme', key: 'LOGIN_OTP', text: 'Code: {{otp}}' },
      ['text', 'set', 'acme', 'LOGIN_OTP', '--file', file('text', 'Code: {{otp}}')],
    ],
    [
      'webhooks',
      'app.webhook',
      { appId: 'shop', url: 'https://shop.example/events' },
      ['app', 'webhook', 'shop', '--url', 'https://shop.example/events'],
    ],
    [
      'destinations',
      'destination.set',
      { rule: 'GB', action: 'allow', sender: 'Acme' },
      ['destination', 'set', 'GB', 'allow', '--sender', 'Acme'],
    ],
    [
      'budgets',
      'budget.set',
      { scope: 'server', period: 'day', amount: '5' },
      ['budget', 'set', 'server', '--per', 'day', '--amount', '5'],
    ],
    [
      'relays',
      'relay.add',
      { name: 'login', kind: 'logto', brand: 'acme', minutes: '10' },
      ['relay', 'add', 'login', '--kind', 'logto', '--brand', 'acme', '--minutes', '10'],
    ],
  ]
  const settings = { APP_CREDENTIALS: JSON.stringify({ shop: 'key-of-the-shop' }) }
  const by = (name: string) => ({ ...settings, ...databaseOf(`by-${name}.db`) })
  const [byFile, byApi, byCommands] = [by('file'), by('api'), by('commands')] as const
  const run = async (env: typeof settings, ...words: string[]) => {
    const { code, stdout, stderr } = await otpost(words, env)
    expect([words.slice(0, 2), code, stderr]).toEqual([words.slice(0, 2), 0, expect.any(String)])
    return stdout
  }
  const states: string[] = []
  for (const env of [byFile, byApi, byCommands]) await run(env, 'migrate')

  const whole = { ...Object.fromEntries(entries.map(([part, _, fields]) => [part, [fields]])), prices }
  await run(byFile, 'apply', file('whole.json', JSON.stringify(whole)))

  const token = (await run(byApi, 'admin', 'token', 'create', 'ci', '--role', 'operator')).match(
    /otp\w+_\w+/,
  )?.[0]
  const server = await startServer(byApi)
  const calls = [
    ['price.import', { prices }] as const,
    ...entries.map((entry) => [entry[1], entry[2]] as const),
  ]
  for (const [action, fields] of calls) {
    const answer = await fetch(new URL(`/api/manage/${action}`, server.url), {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      body: JSON.stringify(fields),
    })
    expect([action, answer.status]).toEqual([action, 200])
  }
  await server.stop()

  await run(byCommands, 'price', 'import', file('prices.csv', prices))
  for (const [, , , words] of entries) await run(byCommands, ...words)

  for (const env of [byFile, byApi, byCommands]) states.push(await run(env, 'config', 'export'))
  expect(states[1]).toBe(states[0] ?? '')
  expect(states[2]).toBe(states[0] ?? '')
  expect(states[0]).toContain('minutes: "10"')
})
