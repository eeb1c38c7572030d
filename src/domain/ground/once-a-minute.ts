import { minuteMs, type Stopwatch } from './time.ts'

/** At most one line a minute for each name. `line` gets the number of events since the previous line; a call is one. */
export function onceAMinute(
  stopwatch: Stopwatch,
): (name: string, line: (events: number) => void, events?: number) => void {
  const states = new Map<string, { events: number; quietUntil: number }>()
  return (name, line, events = 1) => {
    const state = states.get(name) ?? { events: 0, quietUntil: Number.NEGATIVE_INFINITY }
    states.set(name, state)
    state.events += events
    if (stopwatch() < state.quietUntil) return
    line(state.events)
    state.events = 0
    state.quietUntil = stopwatch() + minuteMs
  }
}
