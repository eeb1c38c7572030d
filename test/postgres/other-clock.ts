// For `--preload`: sets the clock of a server ahead by CLOCK_AHEAD_MS, or behind if that is negative.
const aheadMs = Number(process.env.CLOCK_AHEAD_MS)
const Own = globalThis.Date

class OtherDate extends Own {
  constructor(...values: ConstructorParameters<DateConstructor> | []) {
    if (values.length === 0) super(Own.now() + aheadMs)
    else super(...values)
  }

  static override now(): number {
    return Own.now() + aheadMs
  }
}

globalThis.Date = OtherDate as DateConstructor
