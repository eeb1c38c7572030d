import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { referencePages } from '../../release/docs.ts'
import { mostWords, totalWords } from '../../release/words.ts'
import { allSettings } from '../../src/config/all-settings.ts'
import { root } from './pages.ts'
import { settingNames } from './program.ts'

test('the pages for users have at most 55,000 words: see `bun release/words.ts`', () => {
  expect(totalWords).toBeLessThanOrEqual(mostWords)
})

describe('generated pages', () => {
  test.each(Object.entries(referencePages()))('%s is what `bun run docs` writes', (path, text) => {
    expect(readFileSync(join(root, path), 'utf8'), 'Run `bun run docs`.').toBe(text)
  })
})

describe('settings', () => {
  const names = allSettings.map(({ name }) => name)

  test('are declared once', () => {
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([])
  })

  test('that the program reads are those on the page', () => {
    expect([...settingNames()].sort()).toEqual([...names].sort())
  })

  test.each(allSettings.map((setting) => [setting.name, setting] as const))(
    '%s has a meaning, a default and allowed values',
    (_, setting) => {
      expect(setting.meaning).toMatch(/^[\p{Lu}`].*\.$/u)
      // The console shows it as text.
      expect(setting.meaning).not.toContain('](')
      expect(
        'choices' in setting || 'min' in setting || setting.default === false || setting.format,
      ).toBeTruthy()
    },
  )
})
