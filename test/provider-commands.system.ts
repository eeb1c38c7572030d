import { afterAll, expect, test } from 'bun:test'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ProviderFile } from '../src/adapters/sms/file/format.ts'
import { temporaryFolder } from './support/folder.ts'
import { programEnv, programLine } from './support/program.ts'
import { ended } from './support/run.ts'

// The way of an operator with a gateway that otpost does not know, without a database.

const folder = temporaryFolder()
afterAll(() => folder.remove())
const at = (name: string) => join(folder.path, name)

function provider(args: readonly string[], lines: readonly string[] = [], folderOfFiles = folder.path) {
  return ended(programLine(['provider', ...args]), {
    cwd: folder.path,
    env: programEnv({ PROVIDER_FILES: folderOfFiles }),
    stdin: Buffer.from(lines.map((line) => `${line}\n`).join('')),
  })
}

test('new writes a file that lacks its examples, and check replays them', async () => {
  const wrong = ['docs', 'https://gw.example/docs', 'https://gw.example/send?a=1', 'https://gw.example/send']
  const fields = ['', 'form', 'to', 'digits', 'message', 'sender', 'field', 'password', '$[1]']
  const made = await provider(['new', 'gate-way'], [...wrong, ...fields])
  expect(made.code).toBe(0)
  expect(made.stderr.match(/Try again/g)).toHaveLength(2)
  expect(made.stdout).toContain('- vectors: none has an accepted answer\n- vectors: none has an error\n')

  const file: ProviderFile = JSON.parse(readFileSync(at('gate-way.json'), 'utf8'))
  const form = { to: '447400123456', message: 'Hi', sender: 'ACME', password: 'k' }
  const request = { method: 'POST', url: 'https://gw.example/send', form }
  const vector = {
    settings: { GATE_WAY_KEY: 'k', GATE_WAY_FROM: 'ACME' },
    message: { to: '447400123456', text: 'Hi' },
    request,
  }
  const vectors: ProviderFile['vectors'] = [
    { ...vector, answer: { status: 200, body: 'OK: m-1' }, outcome: 'accepted', id: 'm-1' },
    { ...vector, answer: { status: 200, body: 'ERROR: 7' }, outcome: 'account' },
  ]
  const write = (given: ProviderFile) => writeFileSync(at('gate-way.json'), JSON.stringify(given))
  write({ ...file, vectors })
  expect(await provider(['check', 'gate-way.json', 'none.json'])).toEqual({
    code: 1,
    stdout:
      'gate-way.json: vectors[1]: the outcome is accepted, expected account\nnone.json: it cannot be read (ENOENT)\n',
    stderr: '',
  })
  const listed = async () => {
    const { stdout } = await provider(['list', '--json'])
    return JSON.parse(stdout).find(({ name }: { name: string }) => name === 'gate-way')
  }
  expect(await listed()).toMatchObject({ source: 'file', settings: [], faults: 1 })
  const finished = {
    ...file,
    vectors,
    errors: [{ json: '$[0]', equals: ['ERROR'], outcome: 'account' as const }],
  }
  write(finished)
  expect(await provider(['check', 'gate-way.json'])).toMatchObject({
    code: 0,
    stdout: 'gate-way.json: ok, 2 examples passed\n',
  })
  expect(await listed()).toMatchObject({ settings: ['GATE_WAY_KEY', 'GATE_WAY_FROM'], faults: 0 })
  expect(JSON.parse((await provider(['show', 'gate-way'])).stdout)).toEqual(finished)
})

test.each([
  ['an end of the input', ['new', 'half'], 1, 'The input ended. Nothing was written.'],
  ['a built-in name', ['new', 'twilio'], 2, 'twilio is a built-in provider.'],
  ['a path', ['new', '../x'], 2, 'The name must be 2 to 31 lower-case letters'],
  ['a provider without a file', ['show', 'twilio'], 1, 'twilio is built in and has no file.'],
  ['an unknown provider', ['show', '../../etc/passwd'], 1, 'There is no provider ../../etc/passwd.'],
])('%s is an error', async (_, args, code, words) => {
  const answer = await provider(args)
  expect({ ...answer, stderr: answer.stderr.includes(words) }).toEqual({ code, stdout: '', stderr: true })
  for (const name of ['half.json', 'twilio.json', '../x.json']) expect(existsSync(at(name))).toBe(false)
})

test('a folder that cannot be read is an error', async () => {
  const { code, stderr } = await provider(['list'], [], at('nowhere'))
  expect({ code, stderr }).toEqual({
    code: 78,
    stderr: 'otpost: Invalid settings:\n  PROVIDER_FILES names a folder that cannot be read (ENOENT)\n',
  })
})
