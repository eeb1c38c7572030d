import type { AuditReader, AuditRecord } from '../ground/audit.ts'
import { nameKey } from '../texts/brand.ts'
import type { BrandText, TextTarget } from '../texts/brand-texts.ts'
import { inWords } from './changes.ts'

// The audit log has each change of a text as `before → after`. A text can have an arrow too, so each text is found from the one after it.

export interface TextVersion {
  readonly version: number
  /** False: the text was removed. */
  readonly isStored: boolean
  readonly content: Pick<BrandText, 'subject' | 'text' | 'html'>
  /** The change that made it. */
  readonly record: AuditRecord
}

const storing = ['text.set', 'text.published', 'text.restored']
const mostRecords = 1000
const parts = ['subject', 'text', 'html'] as const

/** The changes of a brand's texts, latest first. */
export function textRecords(audit: AuditReader, slug: string): Promise<readonly AuditRecord[]> {
  return audit.list({ target: nameKey(slug), actions: [...storing, 'text.removed'], limit: mostRecords })
}

/** Latest first, as far as the audit log has them. */
export function textVersions(
  { templateKey, channel, lang }: TextTarget,
  published: BrandText | undefined,
  records: readonly AuditRecord[],
): readonly TextVersion[] {
  const versions: TextVersion[] = []
  let content: Partial<Record<(typeof parts)[number], string | null>> = published ?? {}
  for (const record of records) {
    const { details, action } = record
    const isOf = details.template === templateKey && details.channel === channel && details.lang === lang
    if (!isOf) continue
    const { subject = null, text = '', html = null } = content
    const isStored = storing.includes(action)
    versions.push({
      version: Number(details.version),
      isStored,
      content: { subject, text: text ?? '', html },
      record,
    })
    const earlier: typeof content = {}
    for (const part of parts) {
      const change = details[part]
      const after = ` → ${inWords(content[part])}`
      if (change !== undefined && !change.endsWith(after)) return versions
      const before = change === undefined ? content[part] : change.slice(0, -after.length)
      earlier[part] = before === undefined || before === '-' ? null : before
    }
    content = earlier
  }
  return versions
}
