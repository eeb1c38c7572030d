import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { machine } from './machine.ts'
import { cpu } from './parts/cpu.ts'
import { memory } from './parts/memory.ts'
import { peers } from './parts/peers.ts'
import { postgres } from './parts/postgres.ts'
import { pumping, reportedSeeds } from './parts/pumping.ts'
import { rows } from './parts/rows.ts'
import { start } from './parts/start.ts'
import { tail } from './parts/tail.ts'
import { upkeep } from './parts/upkeep.ts'
import { type Variant, variants } from './pumping/scenarios.ts'
import { markdown, type PartResult } from './report.ts'
import { full, quick } from './scale.ts'
import { Bench } from './servers.ts'
import { wrkVersion } from './wrk.ts'

const parts = { cpu, peers, tail, rows, memory, start, upkeep, postgres, pumping }
type PartName = keyof typeof parts

const help = `bun run bench [--quick] [--only PART,PART] [--binary PATH]
                 [--attack TEXT] [--seed NUMBER,NUMBER] [--site large|small] [--setting LIST] [--postgres]

Measures the real process and prints a Markdown table, which a whole run also writes to bench/results.md. Takes about
70 minutes, of which pumping takes 20 to 25 and tail 10.

  --quick        about ten minutes: fewer and shorter rounds, fewer rows; writes nothing
  --only PARTS   some of ${Object.keys(parts).join(', ')}; writes nothing but the table of
                 pumping and the plot of tail in docs
  --binary PATH  a compiled otpost instead of the source; pumping always uses the source
  --postgres     pumping uses PostgreSQL, not SQLite
  --attack TEXT  pumping plays only what has this text in its name
  --site SITE    pumping plays only the large or the small site
  --setting LIST some of ${variants.join(', ')}; pumping has one or several for each attack
  --seed NUMBERS of the traffic of pumping, ${reportedSeeds.join(',')} by default. Thresholds are tuned with other seeds
  --help

It needs Linux and, except for pumping, wrk (apt-get install wrk). peers, tail and upkeep need a C compiler, and tail
uses strace if it is installed. It creates its databases in TMPDIR, which should be on a real disk; pumping uses
/dev/shm. With redis-server and OTPGATEWAY=PATH, the parts peers and tail measure that otpgateway too.
`

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    binary: { type: 'string' },
    seed: { type: 'string' },
    attack: { type: 'string', default: '' },
    site: { type: 'string' },
    setting: { type: 'string' },
    postgres: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (options.help) {
  process.stdout.write(help)
  process.exit()
}
const names = options.only?.split(',') ?? Object.keys(parts)
const unknown = names.filter((name) => !isPart(name))
if (unknown.length > 0) fail(`there is no part ${unknown.join(', ')}, only ${Object.keys(parts).join(', ')}`)
if (wrkVersion() === undefined && names.some((name) => name !== 'pumping'))
  fail('wrk is not installed, and the bench drives the servers with it: apt-get install wrk')
const needCompiler = names.filter((name) => ['peers', 'tail', 'upkeep'].includes(name))
if (Bun.which('cc') === null && needCompiler.length > 0)
  fail(`${needCompiler.join(', ')} need a C compiler: apt-get install gcc libc6-dev`)
const seeds =
  options.seed?.split(',').map(Number) ?? (options.quick ? reportedSeeds.slice(0, 1) : reportedSeeds)
if (!seeds.every(Number.isInteger)) fail('--seed must be whole numbers')

const binary = options.binary === undefined ? undefined : resolve(options.binary)
await using bench = new Bench(binary)
const lines = machine(bench.folder, binary === undefined ? 'from source' : 'compiled')
const flags = `${options.quick ? ' --quick' : ''}${binary === undefined ? '' : ' --binary PATH'}${options.postgres ? ' --postgres' : ''}`
const results: PartResult[] = []
let isWhole = !options.quick && options.only === undefined
for (const name of names.filter(isPart)) {
  const startedAt = performance.now()
  process.stderr.write(`${name} … `)
  try {
    const result = await parts[name](bench, options.quick ? quick : full, {
      seeds,
      usesPostgres: options.postgres,
      attack: options.attack,
      sites: options.site?.split(',') ?? (options.quick ? ['small'] : ['large', 'small']),
      isWhole: !(
        options.quick ||
        options.postgres ||
        options.attack ||
        options.seed ||
        options.site ||
        options.setting
      ),
      variants: options.setting?.split(',').filter(isVariant),
    })
    const before = ['peers', 'tail'].includes(name) && process.env.OTPGATEWAY ? 'OTPGATEWAY=PATH ' : ''
    results.push({ ...result, title: `${result.title} (\`${before}bun run bench --only ${name}${flags}\`)` })
    process.stderr.write(`${((performance.now() - startedAt) / 1000).toFixed(0)} s\n`)
  } catch (error) {
    // What the other parts find is not lost with it.
    process.stderr.write(`failed: ${error instanceof Error ? error.message : error}\n`)
    process.exitCode = 1
    isWhole = false
    await bench.killAll()
  }
}

const table = markdown(lines, results)
process.stdout.write(`\n${table}`)
if (isWhole) writeFileSync(join(import.meta.dir, 'results.md'), table)

function isPart(name: string): name is PartName {
  return Object.hasOwn(parts, name)
}

function isVariant(name: string): name is Variant {
  return variants.some((variant) => variant === name)
}

function fail(message: string): never {
  process.stderr.write(`${message}\n`)
  process.exit(2)
}
