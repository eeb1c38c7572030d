interface Description {
  /** Markdown. */
  readonly meaning: string
  /** Shown as the default if no fixed value is the default. */
  readonly unset?: string
  /** The format of a text, such as `URL`. */
  readonly format?: string
  /** The console hides the value. */
  readonly secret?: true
}

interface TextDescription extends Description {
  readonly default?: string
  /** What the value must match, and the rest of the sentence about a value that does not. */
  readonly valid?: readonly [pattern: RegExp, otherwise: string]
}

/** The value becomes an HTTP header. */
export const printable = [
  /^[ -~]*$/,
  'must be printable ASCII, since it becomes an HTTP header',
] as const satisfies TextDescription['valid']

interface IntegerDescription extends Description {
  readonly default: number
  readonly min: number
  readonly max: number
}

interface FlagDescription extends Description {
  readonly default: false
}

interface ChoiceDescription<Choice extends string = string> extends Description {
  readonly default: Choice
  readonly choices: readonly Choice[]
}

type AnyDescription = TextDescription | IntegerDescription | FlagDescription | ChoiceDescription

interface Named {
  readonly name: string
  readonly group: string
}

export type TextSetting = TextDescription & Named
export type IntegerSetting = IntegerDescription & Named
export type FlagSetting = FlagDescription & Named
export type ChoiceSetting<Choice extends string = string> = ChoiceDescription<Choice> & Named
export type Setting = AnyDescription & Named

/** Code can read a variable only with its declaration. */
export function declare<const Settings extends Readonly<Record<string, AnyDescription>>>(
  group: string,
  descriptions: Settings,
): { readonly [Name in keyof Settings]: Settings[Name] & Named } {
  const entries = Object.entries(descriptions).map(([name, description]) => [
    name,
    { ...description, name, group },
  ])
  return Object.fromEntries(entries)
}
