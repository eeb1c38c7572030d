import { expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { Elysia } from 'elysia'
import type { Page } from 'playwright-core'
import { consoleFiles } from '../../src/adapters/console/assets.ts'
import { createPasskeys, relyingParties } from '../../src/adapters/crypto/passkeys.ts'
import { pagePolicy, staticRoutes } from '../../src/adapters/pages/static.ts'
import { notSetUp } from '../../src/domain/accounts/account-changes.ts'
import type { Account, Passkey } from '../../src/domain/accounts/accounts.ts'
import { addAuthenticator, browserPath } from '../support/browser.ts'
import { useBrowser } from '../support/use-browser.ts'

// passkey.js in a browser with a virtual authenticator, and the server's side of it.

const browser = useBrowser()

const ana: Account = {
  ...notSetUp,
  id: '0199d2a4-7c11-7cc0-a1f5-1f1f6f0a7e55',
  email: 'ana@example.com',
  role: 'owner',
  createdAt: 0,
}

/** A site, as through an SSH tunnel beside its public URL, with a form that adds a passkey and one that signs in with it. */
function startSite() {
  const passkeys: Passkey[] = []
  const results: string[] = []
  const challenges = new Set<string>()
  const of = createPasskeys(() => relyingParties('https://otp.example.com', port))
  const app = new Elysia()
    .use(staticRoutes(consoleFiles))
    .get('/admin/create', () => page('create', of.forNew({ ...ana, passkeys }, newChallenge())))
    .get('/admin/get', () => page('get', of.forUse(newChallenge())))
    .post('/admin/create', async ({ request }) => {
      const { response, challenge } = await received(request)
      const passkey = await of.checkNew(response, challenge)
      if (passkey) passkeys.push({ ...passkey, operatorId: ana.id, name: 'Laptop', createdAt: 0, usedAt: 0 })
      results.push(passkey ? 'added' : 'refused')
      return Response.redirect('/admin/get', 303)
    })
    .post('/admin/get', async ({ request }) => {
      const { response, challenge, credentialId } = await received(request)
      const at = passkeys.findIndex((each) => each.credentialId === credentialId)
      const passkey = passkeys[at]
      const used = passkey && (await of.check(response, challenge, passkey))
      if (used) passkeys[at] = { ...passkey, ...used }
      results.push(used ? 'signed in' : 'refused')
      return Response.redirect('/admin/get', 303)
    })
    .listen({ port: 0, hostname: '127.0.0.1' })
  const port = app.server?.port ?? 0

  function newChallenge(): string {
    const challenge = randomBytes(32).toString('base64url')
    challenges.add(challenge)
    return challenge
  }

  /** The response with a challenge of this server, which it uses up. */
  async function received(request: Request) {
    const response = String((await request.formData()).get('passkey'))
    const { challenge = '', credentialId } = of.read(response) ?? {}
    return { response, credentialId, challenge: challenges.delete(challenge) ? challenge : 'none' }
  }

  return {
    page: new URL(`http://localhost:${port}/admin/`),
    port,
    results,
    passkeys,
    async [Symbol.asyncDispose](): Promise<void> {
      await app.stop(true)
    },
  }
}

function page(kind: string, options: string): Response {
  const json = Bun.escapeHTML(options)
  return new Response(
    `<!doctype html><html lang="en"><title>Passkeys</title><script type="module" src="/admin/passkey.js"></script>
    <form method="post" action="/admin/${kind}" data-passkey="${kind}" data-options="${json}">
    <input type="hidden" name="passkey" data-response><button hidden>Use a passkey</button><p role="status"></p></form>`,
    {
      headers: {
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': pagePolicy.replace("form-action 'none'", "form-action 'self'"),
      },
    },
  )
}

const press = (page: Page) => page.getByRole('button', { name: 'Use a passkey' }).press('Enter')

test.skipIf(!browserPath)(
  'a passkey is added and signs in with the keyboard; a second one of the account is not',
  async () => {
    await using site = startSite()
    await using visitor = await browser.visit()
    const { page } = visitor
    await addAuthenticator(page)
    await visitor.open({ page: new URL('create', site.page) })
    await press(page)
    await page.waitForURL('**/get')
    for (const counter of [2, 3]) {
      await Promise.all([page.waitForEvent('domcontentloaded'), press(page)])
      expect(site.passkeys).toMatchObject([{ signCount: counter, transports: 'internal' }])
    }
    expect(site.results).toEqual(['added', 'signed in', 'signed in'])
    await page.goto(`${site.page}create`)
    await press(page)
    await page.getByText('This device already has a passkey of your account.').waitFor()
    expect(visitor.complaints).toEqual([])
    expect(visitor.errors).toEqual([])
  },
  120_000,
)

test.skipIf(!browserPath)(
  'the page says why there is no passkey',
  async () => {
    await using site = startSite()
    await using visitor = await browser.visit()
    const { page } = visitor
    await addAuthenticator(page, false)
    const status = page.getByRole('status')
    await visitor.open({ page: new URL('create', site.page) })
    await press(page)
    await status.getByText('Cancelled, timed out, or no matching passkey. Try again.').waitFor()
    // The IP address is not the name that passkeys belong to.
    await page.goto(`http://127.0.0.1:${site.port}/admin/get`)
    await press(page)
    await status.getByText('127.0.0.1 is an IP address. Open the console at its public URL').waitFor()
    expect(site.results).toEqual([])
    await page.addInitScript('Object.assign(globalThis, { PublicKeyCredential: undefined })')
    await page.goto(`${site.page}get`)
    await status.getByText('This browser is too old for passkeys. Update it.').waitFor()
    expect(await page.getByRole('button').count()).toBe(0)
  },
  120_000,
)
