import { expect, test } from 'bun:test'
import { hasEnded, processOwner } from '../src/process-owner.ts'

const own = processOwner()
const [machine = '', pid, start] = own.split(' ')
const boot = machine.split('/')[1]

test.each([
  ['this process', own, false],
  ['a process that ended, whose ID another one uses', `${machine} ${pid} ${Number(start) - 1}`, true],
  ['a process ID that no process has', `${machine} 999999999 ${start}`, true],
  ['a process of an unknown boot', `elsewhere//pid:[1] ${pid} 1`, false],
  ['an owner of another form', 'elsewhere 1 1', false],
  ['a process of another container', `elsewhere/${boot}/pid:[1] ${pid} 1`, false],
])('%s', (_, owner, expected) => {
  for (const isLocal of [false, true]) expect(hasEnded(owner, { isLocal })).toBe(expected)
})

test('a process of another boot has ended if the database is of this machine alone', () => {
  const owner = `${machine.replace(`/${boot}/`, '/another boot/').replaceAll(' ', '_')} ${pid} ${start}`
  expect(hasEnded(owner, { isLocal: true })).toBe(true)
  expect(hasEnded(owner, { isLocal: false })).toBe(false)
})

test('a process that was killed has ended', async () => {
  const module = `${import.meta.dir}/../src/process-owner.ts`
  const child = Bun.spawn(
    [
      process.execPath,
      '-e',
      `console.log((await import('${module}')).processOwner()); await Bun.sleep(60_000)`,
    ],
    {
      stdout: 'pipe',
    },
  )
  const reader = child.stdout.getReader()
  const owner = new TextDecoder().decode((await reader.read()).value).trim()
  expect(hasEnded(owner, { isLocal: false })).toBe(false)
  child.kill('SIGKILL')
  await child.exited
  expect(hasEnded(owner, { isLocal: false })).toBe(true)
})
