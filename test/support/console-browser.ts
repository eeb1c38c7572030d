import type { Page } from 'playwright-core'
import { readStoreConfig } from '../../src/config/store.ts'
import { type Context, openContext } from '../../src/context.ts'
import { makeLink } from '../../src/domain/accounts/sessions.ts'
import { putBrand } from '../../src/domain/operator/brands.ts'
import { password } from './console.ts'
import { openTestDatabase } from './database.ts'
import { tester } from './operator.ts'
import { otpost, startServer } from './server.ts'

export interface ConsoleScene {
  /** Settings beside those of `startServer`. */
  readonly env?: Readonly<Record<string, string>>
  /** What the database holds when the server starts, beside the brand `acme`. */
  readonly prepare?: (context: Context) => Promise<void>
}

/** A server process of the test's own with the console, over a database with an active brand `acme`. */
export async function startConsole({ env = {}, prepare }: ConsoleScene = {}) {
  const database = await openTestDatabase()
  const own = { ...database.env, ...env }
  /** In this process, on the server's database. */
  const change = async (act: (context: Context) => Promise<void>): Promise<void> => {
    const context = await openContext(readStoreConfig(own))
    try {
      await act(context)
    } finally {
      await context.close()
    }
  }
  await change(async (context) => {
    await putBrand(context.acting(tester), 'acme', {
      displayName: 'Acme',
      notifyTemplates: ['ORDER_PLACED', 'ORDER_DELIVERED'],
      loginIdEnabled: true,
    })
    await prepare?.(context)
  })
  const server = await startServer(own)
  return {
    ...server,
    change,
    /** Where the console is. */
    page: new URL('/admin', server.url),
    /** A POST of JSON with nothing in it but this. */
    postAs: (path: string, body: Readonly<Record<string, unknown>>) =>
      server.request('POST', path, {
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    /** A command of the operator on the server's machine; resolves to what it printed. */
    async command(...args: readonly string[]): Promise<string> {
      const { code, stdout, stderr } = await otpost(args, { ...own, PORT: server.url.port })
      if (code !== 0) throw new Error(`otpost ${args.join(' ')}: ${code} ${stderr}`)
      return stdout.trim()
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await server.stop()
      await database.remove()
    },
  }
}

export type ConsoleServer = Awaited<ReturnType<typeof startConsole>>

/** Signs in by a link, without the script of its page. */
export async function signIn(page: Page, server: ConsoleServer): Promise<void> {
  let token = ''
  await server.change(async (context) => {
    token = await makeLink(context, tester)
  })
  const body = new URLSearchParams({ token })
  const { headers } = await server.request('POST', '/admin/link', { body, redirect: 'manual' })
  const [cookie = ''] = headers.getSetCookie()
  const [name = '', value = ''] = cookie.split(/[=;]/)
  await page.context().addCookies([{ name, value, url: String(server.page) }])
  await page.goto(String(server.page))
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
}

/** Signs in to an account that has an authenticator app. */
export async function signInWithCode(
  page: Page,
  { email, code }: { readonly email: string; readonly code: () => string },
): Promise<void> {
  await page.getByLabel('E-mail address').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.keyboard.press('Enter')
  await page.getByLabel('Code of your authenticator app').fill(code())
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
}
