import { expect, test } from 'bun:test'
import { join } from 'node:path'

/** Runs a script with a logger of its own; resolves to its exit code and the messages it wrote. */
async function logging(script: string): Promise<{ code: number; messages: unknown[] }> {
  const module = join(import.meta.dir, '../../src/adapters/log/logger.ts')
  const child = Bun.spawn(
    [
      process.execPath,
      '-e',
      `import { createLogger } from ${JSON.stringify(module)}
       const { logger, close } = createLogger('info')
       ${script}`,
    ],
    { stdout: 'pipe', stderr: 'inherit' },
  )
  const text = await new Response(child.stdout).text()
  const lines = text.split('\n').filter((line) => line !== '')
  return { code: await child.exited, messages: lines.map((line) => JSON.parse(line).msg) }
}

test('all that was logged before the end is written', async () => {
  const { code, messages } = await logging(`
    for (let line = 0; line < 500; line++) logger.info('line ' + line)
    await close()
    process.exit(0)`)
  expect(code).toBe(0)
  expect(messages).toEqual(Array.from({ length: 500 }, (_, line) => `line ${line}`))
})

test('what is logged after the end is lost, and is no fault', async () => {
  const { code, messages } = await logging(`
    logger.info('before')
    await close()
    logger.fatal('after')
    process.exit(0)`)
  expect(code).toBe(0)
  expect(messages).toEqual(['before'])
})
