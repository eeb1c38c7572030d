import { password, passwordHash, Visitor } from '../support/console.ts'
import { otpost } from '../support/server.ts'
import { type Attack, anyOf, attack, behindProxy, statusWith, type Target } from './attack.ts'

const withPassword = { ADMIN_PASSWORD_HASH: passwordHash, ...behindProxy }
const sameOrigin = { 'sec-fetch-site': 'same-origin' }
const cookieName = 'otpost_flash'

/** A browser without a screen, that follows nothing by itself. */
function visitor(target: Target, headers: Readonly<Record<string, string>> = {}): Visitor {
  const request: Target['request'] = (method, path, init) =>
    target.request(method, path, { ...init, redirect: 'manual' })
  return new Visitor({ request }, headers)
}

export const consoleAttacks: readonly Attack[] = [
  {
    title: 'weak passwords for the console',
    async play() {
      const weak = [
        'password',
        'Tr0ub4dor&3xyz',
        'passwordpassword',
        '123456789012345',
        'aaaaaaaaaaaaaaaaaaaa',
      ]
      const tries = weak.map(async (word) =>
        (await statusWith(['admin', 'password'], `${word}\n`)) === 0 ? `${word} is accepted` : undefined,
      )
      const strong = await statusWith(['admin', 'password'], 'thunder kettle mosaic 41 drift\n')
      return anyOf([...(await Promise.all(tries)), strong === 0 ? undefined : 'a strong one is not accepted'])
    },
  },
  attack(
    '110 wrong passwords from 11 IP addresses, so that the operator can not sign in',
    withPassword,
    async (target) => {
      const tryFrom = (ip: string, word: string) =>
        visitor(target, { 'x-forwarded-for': ip }).post('/admin/login', { password: word })
      for (let count = 0; count < 110; count++) await tryFrom(`203.0.113.${count % 11}`, 'not the password')
      const { status } = await tryFrom('198.51.100.1', password)
      return status === 303 ? undefined : `the right password from another IP address: ${status}`
    },
  ),
  attack('40 wrong passwords from one IP address', withPassword, async (target) => {
    const browser = visitor(target, { 'x-forwarded-for': '203.0.113.9' })
    const statuses: number[] = []
    for (let count = 0; count < 40; count++)
      statuses.push((await browser.post('/admin/login', { password: 'not the password' })).status)
    return statuses.at(-1) === 429 ? undefined : `the last answers ${statuses.at(-1)}`
  }),
  attack('wrong passwords that leave no IP address in the log', withPassword, async (target) => {
    const browser = visitor(target, { 'x-forwarded-for': '203.0.113.9' })
    await browser.post('/admin/login', { password: 'not the password' })
    await browser.post('/admin/login', { password })
    await target.stop()
    const warned = target.lines
      .filter((line) => line.includes('203.0.113.9'))
      .map((line) => JSON.parse(line).level)
    return warned.some((level) => level >= 40) ? undefined : 'no warning has the IP address'
  }),
  attack(
    'a forged flash cookie, which shows words of another in the console',
    withPassword,
    async (target) => {
      const browser = await visitor(target).enter()
      const forged = Buffer.from(JSON.stringify(['good', 'Call 555 0100'])).toString('base64url')
      const values = [
        forged,
        `${forged}.${Buffer.alloc(32).toString('base64url')}`,
        `${Buffer.alloc(32).toString('base64url')}.${forged}`,
      ]
      for (const value of values) {
        browser.cookies.set(cookieName, value)
        const { html, status } = await browser.get('/admin')
        if (status !== 200) return `the overview answers ${status}`
        if (html.includes('Call 555 0100')) return 'it is shown'
      }
    },
  ),
  attack('/admin/link, which tells whether a sign-in link is live', {}, async (target) => {
    const look = async () => {
      const { status, body } = await target.request('GET', '/admin/link', {
        headers: { accept: 'text/html' },
      })
      return `${status} ${typeof body === 'string' ? body : ''}`
    }
    const before = await look()
    const { code, stderr } = await otpost(['admin', 'link'], target.env)
    if (code !== 0) return stderr
    const after = await look()
    return before === after
      ? undefined
      : `${before.slice(0, 3)} without a link, ${after.slice(0, 3)} with one`
  }),
  attack('a Host header in the curl line of the page that shows a new key', withPassword, async (target) => {
    const browser = await visitor(target).enter()
    const headers = [
      { host: 'evil.example' },
      { host: 'localhost:6666' },
      { 'x-forwarded-host': 'evil.example' },
    ]
    for (const [index, forged] of headers.entries()) {
      const { html } = await browser.post(
        '/admin/apps/issue',
        { appId: `app${index}` },
        { ...sameOrigin, ...forged },
      )
      const [name = ''] = Object.values(forged)
      if (html.includes(name)) return `it shows ${name}`
    }
  }),
]
