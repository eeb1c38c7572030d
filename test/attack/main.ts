import { tryAttack } from './attack.ts'
import { attacks } from './attacks.ts'

// `bun run attack` plays each attack against a server process of its own and prints whether the limit held. Words after
// it choose the attacks with one of them in their title. OTPOST_BINARY names a compiled program to attack.

const words = process.argv.slice(2)
const chosen = attacks.filter(({ title }) => words.length === 0 || words.some((word) => title.includes(word)))
let passed = 0

/** The servers share the cores with this. */
const atOnce = 3
const waiting = chosen.values()
await Promise.all(
  Array.from({ length: atOnce }, async () => {
    for (const attack of waiting) {
      const happened = await tryAttack(attack)
      if (happened !== undefined) passed++
      console.log(
        happened === undefined ? `held      ${attack.title}` : `NOT HELD  ${attack.title}: ${happened}`,
      )
    }
  }),
)
console.log(`\n${chosen.length - passed} of ${chosen.length} held`)
process.exitCode = passed > 0 || chosen.length === 0 ? 1 : 0
