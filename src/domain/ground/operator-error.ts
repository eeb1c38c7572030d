export class OperatorError extends Error {
  override readonly name = 'OperatorError'
}

/** A value or a combination of values is wrong, independent of what is stored. */
export class InvalidInput extends OperatorError {}
