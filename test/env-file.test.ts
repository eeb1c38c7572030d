import { expect, test } from 'bun:test'
import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { parseEnvFile, readEnvFile, readUsualEnvFile } from '../src/config/env-file.ts'
import { sourceOf, sourceWords, unreadRemedy, withVariable } from '../src/config/setting-source.ts'
import { missingDatabase } from '../src/doctor/missing.ts'
import { settingsFileFindings } from '../src/doctor/settings.ts'
import { temporaryFolder } from './support/folder.ts'

// `--env-file` parses a file as systemd parses an EnvironmentFile, by systemd.exec(5).

const read = (text: string) => {
  const { settings, lost } = parseEnvFile(`NAME=${text}\nNEXT=here\n`)
  expect(lost).toEqual([])
  expect(settings.get('NEXT')).toBe('here')
  return settings.get('NAME')
}

test.each([
  ['plain', 'plain'],
  ['', ''],
  ['  with spaces around  \t', 'with spaces around'],
  ['a#b', 'a#b'],
  ['a # b', 'a # b'],
  ['#b', '#b'],
  ['a=b==', 'a=b=='],
  ["it's", "it's"],
  ['a\\b', 'ab'],
  ['a\\\\b', 'a\\b'],
  ['one \\\n  two', 'one   two'],
  ['kept\\ ', 'kept '],
  [`'single $x \\n "quoted"'`, 'single $x \\n "quoted"'],
  ['\'{\n  "shop": "key"\n}\'', '{\n  "shop": "key"\n}'],
  ['"double \\"quoted\\" \\$x \\` \\\\ \\n"', 'double "quoted" $x ` \\ \\n'],
  ['" spaces "', ' spaces '],
  [`"a"'b' c`, 'abc'],
  ['"a" # b', 'a# b'],
  ['"joined \\\nlines"', 'joined lines'],
])('NAME=%j has the value %j', (text, value) => {
  expect(read(text)).toBe(value)
})

test('comments and empty lines are ignored, and the last of two values is used', () => {
  const { settings, lost } = parseEnvFile('\uFEFF# one\r\n\r\n; two = 3\r\n  A = 1 \r\nA=2\r\n \t# three')
  expect([[...settings], lost]).toEqual([[['A', '2']], []])
})

test.each([
  ['A=1\nB 2\nC=3', [2]],
  ['export A=1', [1]],
  ['1A=1\n=2\n A-B=3', [1, 2, 3]],
  ['A="1\nB=2\n', [1]],
  ["A=1\n\nB='2\n\\'", []],
  ["B='2", [1]],
  ['B="2\\', [1]],
])('%j: the lines %j are reported as ignored', (text, lines) => {
  expect(parseEnvFile(text).lost.map(({ line }) => line)).toEqual(lines)
})

test('any quoted value is read unchanged', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (value) => {
      const unixValue = value.replaceAll('\r\n', '\n')
      expect(read(`"${unixValue.replace(/["\\$`]/g, '\\$&')}"`)).toBe(unixValue)
    }),
  )
})

test('any file is parsed to its end', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('A', '=', '"', "'", '\\', '\n', ' ', '#', '$') }),
      (text) => {
        const { settings, lost } = parseEnvFile(text)
        expect(settings.size + lost.length).toBeLessThanOrEqual(text.split('\n').length)
      },
    ),
  )
})

test('without --env-file, OTPOST_ENV_FILE takes precedence over the usual file, and variables over both', () => {
  const folder = temporaryFolder()
  const [usual, named] = [join(folder.path, 'usual.env'), join(folder.path, 'named.env')]
  writeFileSync(usual, 'PORT=1\nHOST=usual')
  writeFileSync(named, 'PORT=2\nHOST=named')
  const read = (env: Record<string, string | undefined>, file: string) => {
    readUsualEnvFile(env, file)
    return { HOST: env.HOST, PORT: env.PORT, from: sourceWords(sourceOf(env, 'HOST')) }
  }
  expect(read({ PORT: '3' }, usual)).toEqual({ HOST: 'usual', PORT: '3', from: `env file ${usual}` })
  expect(read({ HOST: '', OTPOST_ENV_FILE: named }, usual)).toEqual({
    HOST: 'named',
    PORT: '2',
    from: `env file ${named}`,
  })
  expect(read({ HOST: 'given', OTPOST_ENV_FILE: '/dev/null' }, usual)).toEqual({
    HOST: 'given',
    PORT: undefined,
    from: 'environment',
  })
  const env: Record<string, string | undefined> = {}
  readUsualEnvFile(env, usual)
  const changed = withVariable(env, 'PORT', '4')
  expect(changed).toEqual({ HOST: 'usual', PORT: '4' })
  expect(['HOST', 'PORT'].map((name) => sourceOf(changed, name).source)).toEqual(['file', 'environment'])
  const gone = join(folder.path, 'gone.env')
  expect(read({}, gone)).toEqual({ HOST: undefined, PORT: undefined, from: 'default' })
  expect(() => read({ OTPOST_ENV_FILE: gone }, usual)).toThrow(
    `OTPOST_ENV_FILE ${gone} cannot be read (ENOENT)`,
  )
  folder.remove()
})

test('a usual file that this user can not read is named in what to do', () => {
  const folder = temporaryFolder()
  const usual = join(folder.path, 'usual.env')
  const env: Record<string, string | undefined> = {}
  readUsualEnvFile(env, usual)
  expect(unreadRemedy(env)).toBeUndefined()
  // Unlike a mode, also root can not read a link to itself.
  symlinkSync(usual, usual)
  readUsualEnvFile(env, usual)
  expect(env).toEqual({})
  expect(unreadRemedy(env)).toBe(
    `This user cannot read ${usual}. To use the settings of the server, run the command as its user, such as with \`sudo -u otpost\`.`,
  )
  expect(settingsFileFindings(env)).toMatchObject([
    { level: 'warn', text: `This user cannot read ${usual}, so otpost ignores it.` },
  ])
  const config = { database: { kind: 'sqlite', file: '/none/otpost.db', name: '/none/otpost.db' } } as const
  expect(missingDatabase(env, config).remedy).toStartWith(`This user cannot read ${usual}.`)
  env.DATABASE_URL = 'file:/none/otpost.db'
  expect(missingDatabase(env, config).remedy).toStartWith("Use the server's settings")
})

test('doctor names a setting of a file whose name is misspelled', () => {
  const folder = temporaryFolder()
  const file = join(folder.path, 'settings.env')
  writeFileSync(
    file,
    'GAURD=deny\nPHONE_LIMIT_PER_HUOR=3\nSMS_COUNTRYS=IN\nHOME=/\nHTTPS_PROXY=http://127.0.0.1:1\nPORT=3000\nTZ=UTC\n',
  )
  const env: Record<string, string | undefined> = { SMTP_URLS: 'not of a file' }
  readEnvFile(file, env)
  expect(settingsFileFindings(env).map((finding) => [finding.level, finding.text])).toEqual(
    ['GAURD', 'PHONE_LIMIT_PER_HUOR', 'SMS_COUNTRYS'].map((name) => [
      'warn',
      `${name} in ${file} is not a setting of otpost, and has no effect.`,
    ]),
  )
  expect(settingsFileFindings(env)[0]).toMatchObject({
    remedy: expect.stringContaining('If you mean GUARD,'),
  })
})
