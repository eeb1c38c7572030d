/** A page that a visitor received. */
export interface Page {
  readonly status: number
  readonly headers: Headers
  /** The redirect target; null without one. */
  readonly location: string | null
  readonly text: string
}

/** What each request of a visitor may have besides its form. */
interface Asking {
  readonly headers?: Readonly<Record<string, string>>
}

/** A browser without scripts: keeps cookies, sends forms, and follows no redirect by itself. */
export class Visitor {
  /** Everything that it received. */
  readonly seen: string[] = []
  /** Its cookies, by name. */
  readonly cookies = new Map<string, string>()

  constructor(private readonly origin: string) {}

  get(path: string): Promise<Page> {
    return this.ask(path, {})
  }

  /** Sends a form as a page of the same site does, unless `headers` says otherwise. */
  post(path: string, fields: Readonly<Record<string, string>> = {}, asking: Asking = {}): Promise<Page> {
    return this.ask(path, {
      method: 'POST',
      headers: { origin: this.origin, ...asking.headers },
      body: new URLSearchParams(fields),
    })
  }

  private async ask(path: string, init: RequestInit): Promise<Page> {
    const cookie = Array.from(this.cookies, ([name, value]) => `${name}=${value}`).join('; ')
    const headers = new Headers(init.headers)
    if (cookie !== '') headers.set('cookie', cookie)
    const answer = await fetch(new URL(path, this.origin), { ...init, headers, redirect: 'manual' })
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '') this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
    const text = await answer.text()
    this.seen.push(text, JSON.stringify([...answer.headers]))
    return { status: answer.status, headers: answer.headers, location: answer.headers.get('location'), text }
  }
}

/** The text of the page's alert, as displayed. */
export function alertOf({ text }: Page): string {
  const alert = /<p role="alert">(.*?)<\/p>/s.exec(text)?.[1] ?? ''
  return alert.replace(/<[^>]*>/g, '')
}
