import { Argument, type Command, Option } from 'commander'
import { shellWord } from '../adapters/pages/words.ts'
import type { Advice, Reference } from '../domain/ground/advice.ts'
import { actionOf } from '../domain/operator/actions.ts'
import type { Field } from '../domain/operator/fields.ts'

/** With the command of each reference in backticks. */
export function adviceWords(program: Command, advice: Advice): string {
  return advice
    .map((part) => (typeof part === 'string' ? part : `\`${commandLine(program, part)}\``))
    .join('')
}

/** Arguments that are not known are in capitals. */
function commandLine(program: Command, { to, fields }: Reference): string {
  const words = to.split(' ')
  const command = words.reduce<Command | undefined>(
    (parent, word) => parent?.commands.find((each) => each.name() === word),
    program,
  )
  if (!command) throw new Error(`There is no command ${to}.`)
  const declared = actionOf(to)?.fields
  const known = new Map(
    Object.entries(fields).map(([name, value]) => {
      const field = declared?.[name]
      return [field ? attributeOf(name, field) : name, value]
    }),
  )
  const args = command.registeredArguments.flatMap((argument) => {
    const value = known.get(argument.name())
    if (value !== undefined) return shellWord(value)
    return argument.required ? argument.name().toUpperCase() : []
  })
  const options = command.options.flatMap((option) => {
    const value = known.get(option.attributeName())
    // The twin of an option that takes a value.
    const isTwin =
      option.negate &&
      command.options.some((each) => each !== option && each.attributeName() === option.attributeName())
    if (!option.long || isTwin) return []
    if (value === undefined) return option.mandatory ? `${option.long} ${placeOf(option)}` : []
    return option.isBoolean() ? option.long : `${option.long} ${shellWord(value)}`
  })
  return ['otpost', ...words, ...args, ...options].join(' ')
}

/** `SLUG` of `--brand <slug>`. */
function placeOf({ flags }: Option): string {
  return (/<([^>]+)>/.exec(flags)?.[1] ?? '').toUpperCase()
}

export function spelling(name: string, { as = `<${name}>` }: Pick<Field, 'as'>): string {
  return as
}

/** Under which commander has its value. */
export function attributeOf(name: string, field: Field): string {
  const as = spelling(name, field)
  return as.startsWith('-') ? new Option(as).attributeName() : new Argument(as).name()
}
