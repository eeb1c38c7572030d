import type { Clock, Secrets } from '../ports.ts'
import type { OtpStore } from './store.ts'

export interface SubjectPorts {
  readonly secrets: Pick<Secrets, 'subjects'>
  readonly store: Pick<OtpStore, 'rekey'>
  readonly now: Clock
}

/**
 * What stands for a recipient or a network address in the store. While the server's secret is being replaced, what is
 * kept of it under a former one moves over first, so that live codes and open limits outlive the change.
 */
export async function subjectOf(
  { secrets, store, now }: SubjectPorts,
  kind: 'SMS' | 'EMAIL' | 'ip',
  value: string,
): Promise<string> {
  const [subject, ...former] = secrets.subjects(kind, value)
  if (former.length > 0) await store.rekey(subject, former, now())
  return subject
}
