import type { Context } from '../../src/context.ts'
import { makeLink } from '../../src/domain/accounts/sessions.ts'
import type { TestApp } from './app.ts'
import { tester } from './operator.ts'

/** A password of an account, and a hash of it that costs little: tests ask for many. */
export const password = 'correct horse battery staple'
export const passwordHash = Bun.password.hashSync(password, {
  algorithm: 'argon2id',
  memoryCost: 8,
  timeCost: 1,
})

export interface Seen {
  readonly status: number
  readonly headers: Headers
  readonly html: string
}

/** A browser without a screen: keeps cookies, fills in forms, follows nothing by itself. */
export class Visitor {
  readonly cookies = new Map<string, string>()
  private csrf = ''
  /** The page that was seen last. */
  private page = ''

  constructor(
    private readonly app: Pick<TestApp, 'request'>,
    private readonly headers: Readonly<Record<string, string>> = {},
  ) {}

  /** The same browser, at another server of that name. */
  movedTo(app: Pick<TestApp, 'request'>): Visitor {
    const moved = new Visitor(app, this.headers)
    for (const [name, value] of this.cookies) moved.cookies.set(name, value)
    return moved
  }

  async get(path: string): Promise<Seen> {
    return this.ask('GET', path)
  }

  /**
   * A form as the last page that had one gave it: with its token, unless the fields say otherwise. Where the page that
   * was seen last has this form, each field must be in it.
   */
  async post(
    path: string,
    fields: Readonly<Record<string, string | readonly string[]>> = {},
    headers: Readonly<Record<string, string>> = { 'sec-fetch-site': 'same-origin' },
  ): Promise<Seen> {
    const names = namesIn(this.page, path)
    const missing = Object.keys(fields).filter((name) => names.size > 0 && !names.has(name))
    if (missing.length > 0) throw new Error(`the form ${path} has no ${missing.join()}, only ${[...names]}`)
    const pairs = Object.entries({ csrf: this.csrf, ...fields }).flatMap(([name, values]) =>
      [values].flat().map((value) => [name, value]),
    )
    return this.ask('POST', path, {
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      body: new URLSearchParams(pairs).toString(),
    })
  }

  private async ask(method: string, path: string, init: RequestInit = {}): Promise<Seen> {
    const cookie = Array.from(this.cookies, ([name, value]) => `${name}=${value}`).join('; ')
    const answer = await this.app.request(method, path, {
      ...init,
      headers: {
        ...this.headers,
        ...(init.headers as Record<string, string>),
        ...(cookie ? { cookie } : {}),
      },
    })
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = '', rest = ''] = /^([^=]+)=([^;]*)(.*)$/.exec(line) ?? []
      if (/max-age=0/i.test(rest)) this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
    const html = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body)
    this.csrf = /name="csrf" value="([^"]*)"/.exec(html)?.[1] ?? this.csrf
    this.page = html
    return { status: answer.status, headers: answer.headers, html }
  }
}

/** The names of the controls of the forms with this action; none if the page has no such form. */
function namesIn(page: string, action: string): ReadonlySet<string> {
  const forms = page.match(/<form .*?<\/form>/gs) ?? []
  const own = forms.filter((form) => form.includes(`action="${action}"`))
  return new Set(
    own.flatMap((form) => Array.from(form.matchAll(/ name="([^"]*)"/g), ([, name = '']) => name)),
  )
}

type Console = Pick<TestApp, 'request'> & {
  readonly app: { readonly context: Pick<Context, 'sessions' | 'consoleSecrets' | 'now'> }
}

/** Signs in by a link of `otpost admin link`, and looks at the overview. */
export async function signedIn(console: Console, visitor = new Visitor(console)): Promise<Visitor> {
  const entered = await visitor.post('/admin/link', { token: await makeLink(console.app.context, tester) })
  if (entered.status !== 303) throw new Error(`not let in: ${entered.status}`)
  await visitor.get('/admin')
  return visitor
}
