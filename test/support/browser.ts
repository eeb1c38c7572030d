import { join } from 'node:path'
import { type Browser, type BrowserContextOptions, chromium, type Page, type Request } from 'playwright-core'
import { temporaryFolder } from './app.ts'
import { freePorts } from './ports.ts'
import { programEnv, programLine } from './program.ts'
import { outputLog, outputOf } from './run.ts'
import { demoIn } from './server.ts'

/** The browser that CHROMIUM names, else the first one found; undefined where there is none. */
export const browserPath: string | undefined =
  process.env.CHROMIUM ||
  ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']
    .map((name) => Bun.which(name))
    .find((path) => path !== null)

export const withoutBrowser =
  'The pages are not tested: there is no Chromium. Install one (apt-get install chromium) or name it in CHROMIUM.'

/** Longer than a browser takes for anything on a busy machine. */
export const browserPatienceMs = 45_000

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    timeout: browserPatienceMs,
    ...(browserPath ? { executablePath: browserPath } : {}),
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })
}

/**
 * Starts `otpost demo`, and resolves once it printed the URL of its outbox.
 *
 * @param folder where it keeps its database
 */
export async function startDemoIn(folder: string, port: string) {
  const child = Bun.spawn(programLine(['demo']), {
    cwd: folder,
    env: programEnv({ PORT: port }),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [, page = ''] = await outputLog(child.stdout, child.stderr).said(/Outbox page +(\S+)\n/)
  return { child, page: new URL(page) }
}

/** A demo for one test: a real process, an empty database, and a port that stays reserved while the demo is stopped. */
export async function startDemo() {
  const folder = temporaryFolder()
  const port = String(freePorts(1)[0])
  let { child, page } = await startDemoIn(folder.path, port)

  const stop = async () => {
    child.kill('SIGTERM')
    await child.exited
  }
  return {
    /** The URL of the outbox page. */
    page,
    stop,
    /** Starts it again where it was: the same port, the same database. */
    async start(): Promise<void> {
      ;({ child, page } = await startDemoIn(folder.path, port))
    },
    /** A call by another client than the page; throws unless it is answered with 200. */
    async post(path: string, fields: Readonly<Record<string, unknown>>): Promise<void> {
      const response = await fetch(new URL(path, page), {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ ...demoIn(join(folder.path, 'data')), ...fields }),
      })
      if (response.status !== 200) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    },
    /** Where its console is opened, once: what `otpost admin link` prints. */
    async consoleLink(): Promise<string> {
      const env = programEnv({ DATABASE_URL: 'file:data/demo.db', PORT: port })
      return (await outputOf(programLine(['admin', 'link']), { cwd: folder.path, env })).trim()
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await stop()
      folder.remove()
    },
  }
}

export type DemoProcess = Awaited<ReturnType<typeof startDemo>>

/**
 * A page in its own browser profile, which records problems: errors, violations of its content security policy, failed
 * downloads, and requests to other servers.
 */
export async function newVisitor(browser: Browser, options: BrowserContextOptions = {}) {
  // Without a graphics card every frame of a motion costs, and no test looks at one.
  const context = await browser.newContext({
    locale: 'en-GB',
    timezoneId: 'UTC',
    reducedMotion: 'reduce',
    ...options,
  })
  context.setDefaultTimeout(browserPatienceMs)
  // The page reports it, so as not to depend on the browser's message.
  await context.addInitScript(
    `addEventListener('securitypolicyviolation', (event) => console.error('violates', event.violatedDirective, event.blockedURI))`,
  )
  const page = await context.newPage()
  const complaints: string[] = []
  const errors: string[] = []
  let server: URL | undefined
  const isElsewhere = (request: Request) => {
    const { protocol, host } = new URL(request.url())
    return protocol !== 'data:' && host !== server?.host
  }
  page.on('pageerror', (error) => complaints.push(`throws ${error.message}`))
  page.on('console', (message) => {
    const text = message.text()
    if (text.startsWith('violates')) complaints.push(text)
    // The browser's own line on an answer that is no success; which ones those were is looked at below.
    else if (message.type() === 'error' && !text.startsWith('Failed to load resource')) errors.push(text)
  })
  page.on('requestfinished', (request) => {
    if (isElsewhere(request)) complaints.push(`asks ${request.url()}`)
  })
  page.on('requestfailed', (request) => {
    // What a policy blocks has not left the browser.
    if (isElsewhere(request) && request.failure()?.errorText !== 'csp')
      complaints.push(`asks ${request.url()}`)
  })
  page.on('response', (response) => {
    const { pathname } = new URL(response.url())
    // The API may refuse a call: the page shows that.
    if (response.status() >= 400 && !pathname.startsWith('/otp/'))
      complaints.push(`${response.status()} for ${pathname}`)
  })
  return {
    page,
    complaints,
    /** The errors in its console. */
    errors,
    /** Opens a page of the server; `hash` is the fragment of the URL, such as `#to=12025550143`. */
    async open(place: { readonly page: URL }, hash = ''): Promise<void> {
      server = place.page
      await page.goto(`${server}${hash}`)
    },
    [Symbol.asyncDispose]: () => context.close(),
  }
}

export type PageVisitor = Awaited<ReturnType<typeof newVisitor>>

/**
 * Adds a virtual authenticator for passkeys.
 *
 * @param isUserVerified whether the person proves who they are, such as by fingerprint
 */
export async function addAuthenticator(page: Page, isUserVerified = true): Promise<void> {
  const session = await page.context().newCDPSession(page)
  await session.send('WebAuthn.enable')
  await session.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified,
      automaticPresenceSimulation: true,
    },
  })
}
