import type { Channel } from '../ground/contact.ts'
import type { EpochMs } from '../ground/time.ts'

export const variableTypes = ['text', 'number', 'date', 'datetime', 'url'] as const
export type VariableType = (typeof variableTypes)[number]

/** A variable of a brand's own template (design D47). */
export interface DeclaredVariable {
  readonly name: string
  readonly type: VariableType
  /** The greatest length of the rendered value; of a number, the greatest value. */
  readonly max: number
}

/** Of one template and channel, in one language. */
export interface TextTarget {
  readonly templateKey: string
  readonly channel: Channel
  /** BCP 47, in canonical form. */
  readonly lang: string
}

/** A text that an operator has stored for a brand (design D47). */
export interface BrandText extends TextTarget {
  /** Of an e-mail. Null: an SMS. */
  readonly subject: string | null
  readonly text: string
  /** Of an e-mail. Null: made from `text`. */
  readonly html: string | null
  /** From 1; a change adds 1. */
  readonly version: number
  readonly updatedAt: EpochMs
}

/** A text that otpost does not send yet. `version`: of the published text that it would replace; 0: none. */
export interface BrandDraft extends BrandText {
  /** Of a new template. Null: those of the published texts. */
  readonly variables: readonly DeclaredVariable[] | null
}

/** By template key, in order. */
type DeclaredVariables = ReadonlyMap<string, readonly DeclaredVariable[]>

/** What operators have stored of a brand's texts. Immutable. */
export class BrandTexts {
  private readonly byTarget: ReadonlyMap<string, BrandText>

  /** @param all in the order in which they are listed */
  constructor(
    readonly all: readonly BrandText[],
    readonly variables: DeclaredVariables,
    /** In the same order. */
    readonly drafts: readonly BrandDraft[] = [],
  ) {
    this.byTarget = new Map(all.map((text) => [keyOf(text), text]))
  }

  get(target: TextTarget): BrandText | undefined {
    return this.byTarget.size === 0 ? undefined : this.byTarget.get(keyOf(target))
  }

  draft(target: TextTarget): BrandDraft | undefined {
    return this.drafts.find((draft) => isSameTarget(draft, target))
  }
}

export const noTexts = new BrandTexts([], new Map())

export function isSameTarget(a: TextTarget, b: TextTarget): boolean {
  return keyOf(a) === keyOf(b)
}

function keyOf({ templateKey, channel, lang }: TextTarget): string {
  return `${templateKey} ${channel} ${lang}`
}

export interface TextsOfBrand {
  readonly lang: string
  readonly texts: BrandTexts
}

export interface RegisteredTexts extends TextsOfBrand {
  /** By `registrationKeyOf`. */
  readonly registrations: Readonly<Record<string, unknown>>
}

/** `KEY`, or `KEY:lang` for the text in one language. */
export function registrationKeyOf(templateKey: string, lang: string | undefined): string {
  return lang === undefined ? templateKey : `${templateKey}:${lang}`
}

/** @param registrationKey as `registrationKeyOf` returns it */
export function registeredTarget(registrationKey: string) {
  const [templateKey = '', lang] = registrationKey.split(/:(.*)/s)
  return { templateKey, lang }
}
