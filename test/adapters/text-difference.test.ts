import { describe, expect, test } from 'bun:test'
import { type TextChange, textDifference } from '../../src/adapters/console/texts/difference.ts'

describe('the difference of two texts', () => {
  test.each([
    ['a b c', 'a b c', '=a b c'],
    ['a b c', 'a x c', '=a |-b |+x |=c'],
    ['', 'new', '+new'],
    ['gone', '', '-gone'],
    ['{{otp}} is it', 'it is {{otp}}', '-{{otp}} |+it |=is |-it|+{{otp}}'],
    ['one\ntwo', 'one\nthree\ntwo', '=one\n|+three\n|=two'],
    ['कोड है', 'कोड था', '=कोड |-है|+था'],
    ['a '.repeat(3000), 'b '.repeat(3000), `-${'a '.repeat(3000)}|+${'b '.repeat(3000)}`],
  ])('%p and %p', (before, after, expected) => {
    const parts = textDifference(before, after)
    const words = ({ value, added, removed }: TextChange) =>
      (removed ? '-' : added ? '+' : '=') + value.join('')
    expect(parts.map(words).join('|')).toBe(expected)
  })
})
