import { afterAll, expect, test } from 'bun:test'
import { existsSync, writeFileSync } from 'node:fs'
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
  const prices = 'prices: |\n  prefix,currency,price\n  +44,EUR,0.04\n'
  const relay = 'relays:\n  - name: login\n    kind: logto\n    brand: acme\n'
  const text = `brands:\n  - slug: acme\n    displayName: Acme\nwebhooks:\n  - appId: till\n    url: https://till.example/events\n${prices}${relay}`
  const path = file('server.yaml', `${text}    secretFile: login.secret\n`)
  await otpost(['migrate'], env)
  const early = await otpost(['serve'], { ...env, PORT: '0', CONFIG_FILE: path })
  expect([early.code, early.stderr]).toEqual([
    78,
    expect.stringMatching(/CONFIG_FILE.*webhook needs a secret.*otpost apply/s),
  ])
  const before = file('before.yaml', text.slice(0, text.indexOf('relays')))
  expect((await otpost(['apply', before], env)).stdout).toContain('whsec_')
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
  const dearer = file('dearer.yaml', `${text.replace('0.04', '0.05')}    secretFile: login.secret\n`)
  expect((await otpost(['doctor', '--json'], { ...env, CONFIG_FILE: dearer })).stdout).toContain(
    'dearer.yaml: ~ prices: 1 instead of 1.',
  )
  const without = file('without.yaml', text.replace('login', 'other'))
  const { code, stderr } = await otpost(['serve'], { ...env, PORT: '0', CONFIG_FILE: without })
  expect([code, stderr]).toEqual([78, expect.stringMatching(/CONFIG_FILE.*needs a secretFile/s)])
})

test.each([
  ['is missing', 'nowhere.yaml', undefined],
  ['is no YAML', 'broken.yaml', 'brands: ['],
  ['has a fault', 'fault.yaml', 'brands:\n  - colour: red\n'],
  ['has wrong prices', 'prices.yaml', 'prices: "prefix,currency,price\\n+44,EUR,abc"\n'],
  ['has an unknown alias', 'alias.yaml', 'brands:\n  - slug: acme\n    displayName: *unknown\n'],
])(
  'a CONFIG_FILE that %s is a wrong setting, and there is no new database; doctor goes on',
  async (_, name, text) => {
    const path = text === undefined ? join(folder.path, name) : file(name, text)
    const env = { ...databaseOf(`${name}.db`), CONFIG_FILE: path }
    const { code, stderr } = await otpost(['serve'], { ...env, PORT: '0' })
    expect([code, stderr]).toEqual([78, expect.stringContaining(`CONFIG_FILE: ${path}`)])
    expect(existsSync(join(folder.path, `${name}.db`))).toBe(false)
    await otpost(['migrate'], env)
    const { stdout } = await otpost(['doctor'], env)
    expect(stdout).toMatch(/FAIL +configuration/)
    expect(stdout).toMatch(/server +No server answers/)
  },
)
