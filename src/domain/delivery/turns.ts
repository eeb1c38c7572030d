import type { RequestContext } from '../request/request-context.ts'

// Who calls a provider next: codes before notifications, and of each the apps in turn (design D46).

export interface Caller {
  readonly app: string
  readonly isCode: boolean
}

export interface Called {
  readonly name: string
  /** Concurrent calls. Undefined: shares those of all such providers. */
  readonly mostCalls?: number
}

/** Fewer than the HTTP client makes, where calls would wait in the order of their arrival. */
const mostSharedCalls = 220

/** Codes have the rest for themselves, since notifications that were begun cannot make room. */
const shareOfNotifications = 0.75

const mostWaitingPerApp = 1000

/** Calls `act` after a time, unless the returned function is called first. */
export type After = (ms: number, act: () => void) => () => void

export function callerOf({ app = '', operation }: Pick<RequestContext, 'app' | 'operation'>): Caller {
  return { app, isCode: operation !== 'notify' }
}

export class Turns {
  private readonly lines = new Map<string, Line>()
  private readonly shared: Calls = { all: 0, notifications: 0 }

  constructor(
    private readonly after: After,
    private readonly mostShared = mostSharedCalls,
  ) {}

  /** Whether the call got its turn within `waitMs`. Then `leave` must follow. */
  enter(called: Called, { app, isCode }: Caller, waitMs: number): boolean | Promise<boolean> {
    const line = this.lineOf(called)
    const queue = isCode ? line.codes : line.notifications
    if (queue.size === 0 && line.hasRoom(isCode)) {
      line.count(isCode, 1)
      return true
    }
    if (queue.sizeOf(app) >= mostWaitingPerApp) return false
    return new Promise((resolve) => {
      const start = () => {
        cancel()
        line.count(isCode, 1)
        resolve(true)
      }
      const cancel = this.after(waitMs, () => {
        queue.remove(app, start)
        resolve(false)
      })
      queue.add(app, start)
    })
  }

  leave(called: Called, { isCode }: Caller): void {
    this.lineOf(called).count(isCode, -1)
    for (const line of this.lines.values()) line.advance()
  }

  private lineOf({ name, mostCalls }: Called): Line {
    let line = this.lines.get(name)
    if (!line) {
      line = mostCalls === undefined ? new Line(this.mostShared, this.shared) : new Line(mostCalls)
      this.lines.set(name, line)
    }
    return line
  }
}

interface Calls {
  all: number
  notifications: number
}

function add(calls: Calls, isCode: boolean, by: 1 | -1): void {
  calls.all += by
  if (!isCode) calls.notifications += by
}

/** Calls to one provider. */
class Line {
  private readonly own: Calls = { all: 0, notifications: 0 }
  readonly codes = new AppsInTurn()
  readonly notifications = new AppsInTurn()

  /** @param shared calls of all providers that have `most` together: one that does not answer gets at most half */
  constructor(
    private readonly most: number,
    private readonly shared?: Calls,
  ) {}

  hasRoom(isCode: boolean): boolean {
    const { most, own, shared } = this
    if (own.all + (shared?.all ?? 0) >= most) return false
    const notifications = own.notifications + (shared?.notifications ?? 0)
    return isCode || notifications < Math.ceil(most * shareOfNotifications)
  }

  count(isCode: boolean, by: 1 | -1): void {
    add(this.own, isCode, by)
    if (this.shared) add(this.shared, isCode, by)
  }

  advance(): void {
    while (this.codes.size > 0 && this.hasRoom(true)) this.codes.next()?.()
    while (this.notifications.size > 0 && this.hasRoom(false)) this.notifications.next()?.()
  }
}

/** The apps in turn, and the calls of each in the order of their arrival. */
class AppsInTurn {
  size = 0
  private readonly apps = new Map<string, Set<() => void>>()

  sizeOf(app: string): number {
    return this.apps.get(app)?.size ?? 0
  }

  add(app: string, start: () => void): void {
    const own = this.apps.get(app) ?? new Set()
    this.apps.set(app, own.add(start))
    this.size++
  }

  remove(app: string, start: () => void): void {
    const own = this.apps.get(app)
    if (!own?.delete(start)) return
    this.size--
    if (own.size === 0) this.apps.delete(app)
  }

  next(): (() => void) | undefined {
    for (const [app, own] of this.apps) {
      for (const start of own) {
        this.remove(app, start)
        // The app is last now.
        if (this.apps.delete(app)) this.apps.set(app, own)
        return start
      }
    }
    return undefined
  }
}
