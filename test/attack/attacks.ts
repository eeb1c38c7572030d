import type { Attack } from './attack.ts'
import { consoleAttacks } from './console.ts'
import { contentAttacks } from './content.ts'
import { edgeAttacks } from './edge.ts'
import { recipientAttacks } from './recipients.ts'

/** Each way around a limit that was found once. */
export const attacks: readonly Attack[] = [
  ...recipientAttacks,
  ...contentAttacks,
  ...edgeAttacks,
  ...consoleAttacks,
]

/** Tries one; resolves to what happened where the limit did not hold. */
export function tryAttack({ play }: Attack): Promise<string | undefined> {
  return play().catch((error: unknown) => `the attack ended with ${error}`)
}
