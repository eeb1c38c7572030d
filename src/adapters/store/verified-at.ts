import type { EpochMs } from '../../domain/ground/time.ts'

/** When the number of a hash last verified a code. Called for each code that the guard may deny. */
export type VerifiedAt = (subject: string) => Promise<EpochMs | undefined>

type Found = readonly { readonly subject: string; readonly at: EpochMs }[]

/**
 * Questions of one turn of the event loop share a statement.
 * @param read returns rows of those subjects that verified a code
 */
export function verifiedAt(read: (subjects: readonly string[]) => Found | Promise<Found>): VerifiedAt {
  let next: { readonly subjects: string[]; readonly answers: Promise<Map<string, EpochMs>> } | undefined
  const begin = () => {
    const subjects: string[] = []
    const { promise, resolve } = Promise.withResolvers<void>()
    setImmediate(() => {
      next = undefined
      resolve()
    })
    const answers = promise.then(async () => {
      const rows = await read(subjects)
      return new Map(rows.map((row) => [row.subject, row.at]))
    })
    return { subjects, answers }
  }
  return (subject) => {
    next ??= begin()
    next.subjects.push(subject)
    return next.answers.then((answers) => answers.get(subject))
  }
}
