import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import pino from 'pino'

/** Starts a script with its own logger and with `told`, which resolves when `tell` is called. */
function start(script: string) {
  const module = join(import.meta.dir, '../../src/adapters/log/logger.ts')
  const child = Bun.spawn(
    [
      process.execPath,
      '-e',
      `import { createLogger } from ${JSON.stringify(module)}
       const { logger, close } = createLogger('info')
       const told = () => new Promise((resolve) => process.stdin.once('data', resolve))
       ${script}`,
    ],
    { stdin: 'pipe', stdout: 'pipe', stderr: 'pipe', timeout: 20_000, killSignal: 'SIGKILL' },
  )
  return {
    child,
    tell(): void {
      child.stdin.write('\n')
      child.stdin.flush()
    },
  }
}

type Line = Readonly<Record<string, unknown>>

/** Runs a script to its end; returns its exit code and the lines it wrote. */
async function logging(script: string): Promise<{ code: number; lines: Line[]; text: string }> {
  const { child } = start(script)
  const text = await new Response(child.stdout).text()
  return { code: await child.exited, lines: linesOf(text), text }
}

function linesOf(text: string): Line[] {
  const lines = text.split('\n').filter((line) => line !== '')
  return lines.map((line) => JSON.parse(line))
}

test('all lines logged before the end are written, in order', async () => {
  const { code, lines } = await logging(`
    for (let line = 0; line < 5000; line++) logger.info('line ' + line)
    await close()
    process.exit(0)`)
  expect(code).toBe(0)
  expect(lines.map(({ msg }) => msg)).toEqual(Array.from({ length: 5000 }, (_, line) => `line ${line}`))
})

test('lines logged after the end are lost without an error', async () => {
  const { code, lines } = await logging(`
    logger.info('before')
    await close()
    logger.fatal('after')
    process.exit(0)`)
  expect(code).toBe(0)
  expect(lines.map(({ msg }) => msg)).toEqual(['before'])
})

test('a process that exits normally has written its lines', async () => {
  const { code, lines } = await logging(`logger.warn({ file: 'x' }, 'the last words')`)
  expect(code).toBe(0)
  expect(lines).toMatchObject([{ level: 40, file: 'x', msg: 'the last words' }])
})

/** Calls of the logger, as source. */
const calls = [
  `logger.info({ requestId: 'a', status: 200, durationMs: 1.5, ok: true, none: null }, 'ok')`,
  `logger.info({ quotes: '"\\\\"', control: '\\n\\u0000\\u001f', wide: 'Grüße 🎁 \\u2028', long: 'x"'.repeat(100) }, 'a "b"\\n')`,
  `logger.info({ left: undefined, out: () => 1, nan: NaN, endless: Infinity, at: new Date(0) }, 'odd values')`,
  `logger.info({ attempts: [{ recipient: '1202*****43', reason: undefined }, null], deep: { er: [[]] } }, 'nested')`,
  `logger.info({}, 'no fields')`,
  `logger.info('%s is not %d', 'this', 1)`,
  `logger.info({ a: 1 }, '100 % of %s', 'it')`,
  `logger.info({ a: 1 }, 'of %s, with nothing to put there')`,
  `logger.info({ a: 1 })`,
  `logger.error({ err: Object.assign(new TypeError('it broke'), { code: 'E', stack: 'stack' }) }, 'failed')`,
  `logger.error(Object.assign(new Error('alone'), { stack: 'stack' }), 'failed')`,
  `logger.warn({ big: 1n, more: { big: 2n } }, 'big')`,
  `{ const ring = { name: 'ring' }; ring.self = ring; logger.warn({ ring }, 'round') }`,
  `logger.child({ of: 'a child' }).info({ a: 1 }, 'child')`,
  `logger.debug({ a: 1 }, 'below the level')`,
]

test("every line equals pino's output, byte for byte, except for the time", async () => {
  const { text } = await logging(calls.join('\n'))
  let expected = ''
  const destination = {
    write: (line: string) => {
      expected += line
    },
  }
  const logger = pino({ level: 'info', base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination)
  new Function('logger', calls.join('\n'))(logger)
  const time = /"time":"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"/g
  expect(text.match(time)).toHaveLength(calls.length - 1)
  const timeless = (lines: string) => lines.replaceAll(time, '"time"').split('\n')
  expect(timeless(text)).toEqual(timeless(expected))
})

describe('an output that stalls', () => {
  const count = 150_000
  const flood = `
    const rss = () => process.memoryUsage.rss()
    logger.info('ready')
    await told()
    const before = rss()
    const filling = 'x'.repeat(200)
    for (let line = 0; line < ${count}; line++) {
      logger.info({ line, filling }, 'flood')
      if (line % 1000 === 0) await new Promise(setImmediate)
    }
    console.error(Math.round((rss() - before) / 2 ** 20))
    await told()
    await close()
    process.exit(0)`

  /** Fills the pipe of a reader that has read only the first line; resolves when all lines are logged. */
  async function flooded() {
    const { child, tell } = start(flood)
    const reader = child.stdout.getReader()
    const decoder = new TextDecoder()
    let text = ''
    while (!text.includes('\n')) text += decoder.decode((await reader.read()).value, { stream: true })
    tell()
    const said = child.stderr.getReader()
    const growthMebibytes = Number(new TextDecoder().decode((await said.read()).value))
    return {
      child,
      tell,
      growthMebibytes,
      /** Resumes reading, and requests the end when the notice of lost lines has arrived. */
      async readOn(): Promise<Line[]> {
        for (let told = false; ; ) {
          const { value, done } = await reader.read()
          if (done) return linesOf(text)
          text += decoder.decode(value, { stream: true })
          if (told || !text.slice(-value.length - 20).includes('"lost":')) continue
          told = true
          tell()
        }
      },
    }
  }

  test('loses lines in place of using memory, and gets the number of lost lines when it reads again', async () => {
    const { child, growthMebibytes, readOn } = await flooded()
    expect(growthMebibytes).toBeLessThan(100)
    const lines = await readOn()
    expect(await child.exited).toBe(0)
    const [ready, ...rest] = lines
    expect(ready?.msg).toBe('ready')
    const notices = rest.filter(({ lost }) => lost !== undefined)
    expect(notices.map(({ level }) => level)).toEqual([50])
    // Each line is present or counted, and the notice is in the place of the lost lines.
    let next = 0
    for (const { lost, line } of rest) {
      expect(lost ?? line).toBe(lost ?? next)
      next += typeof lost === 'number' ? lost : 1
    }
    expect(next).toBe(count)
  })

  test('does not keep the process from exiting', async () => {
    const { child, tell } = await flooded()
    tell()
    expect(await child.exited).toBe(0)
  })
})

test.skipIf(process.platform !== 'linux')('an output that rejects every write causes no error', async () => {
  const module = join(import.meta.dir, '../../src/adapters/log/logger.ts')
  const script = `
    import { createLogger } from ${JSON.stringify(module)}
    const { logger, close } = createLogger('info')
    for (let line = 0; line < 5000; line++) logger.info({ line }, 'into the void')
    await close()
    process.exit(0)`
  const child = Bun.spawn([process.execPath, '-e', script], { stdout: Bun.file('/dev/full'), stderr: 'pipe' })
  expect(await new Response(child.stderr).text()).toBe('')
  expect(await child.exited).toBe(0)
})
