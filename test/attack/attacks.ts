import type { Attack } from './attack.ts'
import { consoleAttacks } from './console.ts'
import { contentAttacks } from './content.ts'
import { edgeAttacks } from './edge.ts'
import { queueAttacks } from './queue.ts'
import { recipientAttacks } from './recipients.ts'

/** Each way around a limit that was found once. */
export const attacks: readonly Attack[] = [
  ...recipientAttacks,
  ...contentAttacks,
  ...edgeAttacks,
  ...queueAttacks,
  ...consoleAttacks,
]
