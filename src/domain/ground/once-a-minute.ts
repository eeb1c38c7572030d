import { minuteMs, type Stopwatch } from './time.ts'

/** At most one line a minute for each name. `line` gets the number of events since the previous line. */
export function onceAMinute(stopwatch: Stopwatch): (name: string, line: (events: number) => void) => void {
  const states = new Map<string, { events: number; quietUntil: number }>()
  return (name, line) => {
    const state = states.get(name) ?? { events: 0, quietUntil: Number.NEGATIVE_INFINITY }
    states.set(name, state)
    state.events++
    if (stopwatch() < state.quietUntil) return
    line(state.events)
    state.events = 0
    state.quietUntil = stopwatch() + minuteMs
  }
}
