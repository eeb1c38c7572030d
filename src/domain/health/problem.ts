import type { Reference } from '../ground/advice.ts'
import type { CalendarPeriod, EpochMs } from '../ground/time.ts'
import type { CallFilter, LogFilters, LogList } from '../log/log-search.ts'
import type { Cost } from '../request/request-context.ts'
import type { DatabaseOutage } from './database-fault.ts'

/** What can be wrong, worded once: `otpost doctor` prints it, the overview lists it, and alerts send it. */
export interface Problem {
  /** The subject, such as `providers`. */
  readonly what: string
  /**
   * `fail`: messages fail until it is solved, and `otpost doctor` exits with status 1. `bad`: messages or events fail. `warn`: it is
   * over, or may be intended.
   */
  readonly level: 'fail' | 'bad' | 'warn'
  readonly text: string
  /** What to do, in whole sentences. May be empty. */
  readonly remedy: string
  /** Where to see more and act. Each adapter words it: as a command, or as a link. */
  readonly see: readonly See[]
  /** What it is about, such as `provider twilio`: unique among the problems of a time. */
  readonly about?: string
  /** Absent: it is past, permanent or may be intended. */
  readonly ongoing?: Ongoing
}

/** A problem that goes on now: an incident. */
export interface Ongoing {
  /** Such as `No SMS`. The time when it began may follow. */
  readonly title: string
  /** What it does, in a few words. */
  readonly detail?: string
  /** What to do, if it is shorter than the remedy. */
  readonly advice?: string
  /** The change that helps most, with its fields. */
  readonly act?: Reference
  /** As far as the figures say. */
  readonly since?: EpochMs | undefined
  /** The requests that it stops. */
  readonly hit?: CallFilter
  /** Of these requests, those that count. */
  readonly codes?: { readonly sent: number; readonly verified: number }
  /** What of that is in no event log. */
  readonly outage?: DatabaseOutage
  /** What it does to people, if that is known without `hit`. */
  readonly harm?: string
  /** What it costs: what was spent on codes to the country, or of a budget. */
  readonly cost?: { readonly country: string } | BudgetCost
}

export interface BudgetCost extends Cost {
  readonly period: CalendarPeriod
}

export type See = Reference | LogRows | { readonly setting: string } | { readonly docs: string }

/** Rows of the event log. */
export interface LogRows {
  readonly list: LogList
  readonly filters: LogFilters
  /** What they are, unless `list` says it. */
  readonly title?: string
}

/** What a check found: a problem, or that all is well. */
export type Finding = Problem | { readonly level: 'ok'; readonly what: string; readonly text: string }

export function ok(what: string, text: string): Finding {
  return { level: 'ok', what, text }
}

function ofLevel(level: Problem['level']) {
  return (what: string, text: string, remedy: string, ...see: readonly See[]): Problem => {
    return { what, level, text, remedy, see }
  }
}

/** The harm of an incident that stops no message. */
export const noHarm = 'no person misses a message'

export const fail = ofLevel('fail')
export const bad = ofLevel('bad')
export const warn = ofLevel('warn')

/** Those that were found. */
export function found<Each extends object>(...each: readonly (Each | false | undefined)[]): Each[] {
  return each.filter((one) => one !== undefined && one !== false)
}
