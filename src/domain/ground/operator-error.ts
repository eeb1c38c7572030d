import type { Advice } from './advice.ts'

export class OperatorError extends Error {
  override readonly name = 'OperatorError'

  constructor(
    message: string,
    readonly advice: Advice = [],
  ) {
    super(message)
  }
}

/** A value or a combination of values is wrong, independent of what is stored. */
export class InvalidInput extends OperatorError {}
