/** What the reference page, the console and the errors say about an environment variable. */
interface Description {
  /** One or two sentences, in Markdown. */
  readonly meaning: string
  /** What the reference page shows as the default where no fixed value is the default. */
  readonly unset?: string
  /** The format of a text, such as `URL`. */
  readonly format?: string
  /** The console hides the value. */
  readonly secret?: true
}

export interface TextDescription extends Description {
  readonly default?: string
}

export interface IntegerDescription extends Description {
  readonly default: number
  readonly min: number
  readonly max: number
}

export interface FlagDescription extends Description {
  readonly default: false
}

export interface ChoiceDescription<Choice extends string = string> extends Description {
  readonly default: Choice
  readonly choices: readonly Choice[]
}

type AnyDescription = TextDescription | IntegerDescription | FlagDescription | ChoiceDescription

interface Named {
  readonly name: string
  /** The heading on the reference page. */
  readonly group: string
}

export type TextSetting = TextDescription & Named
export type IntegerSetting = IntegerDescription & Named
export type FlagSetting = FlagDescription & Named
export type ChoiceSetting<Choice extends string = string> = ChoiceDescription<Choice> & Named
export type Setting = AnyDescription & Named

/** Declares the environment variables of one heading. Code can read a variable only with its declaration. */
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
