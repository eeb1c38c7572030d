import { describe, expect, test } from 'bun:test'
import { answerText } from '../../src/domain/integration/answer-text.ts'
import { webhookStateOf, webhookStateWords } from '../../src/domain/integration/webhook-state.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

describe('the body of an answer', () => {
  test.each<[string, string, string | null]>([
    ['is text', '{"error": "no such tenant"}', '{"error": "no such tenant"}'],
    ['may be HTML, which stays text', '<h1>502 Bad\u0000 Gateway</h1>', '<h1>502 Bad Gateway</h1>'],
    ['without anything is none', ' \r\n\t ', null],
    ['hides the secret of the webhook', `signed with ${secret}`, 'signed with [hidden]'],
    ['also without its prefix', `key=x, ${secret.slice(6)}!`, 'key=x, [hidden]!'],
    ['hides what the caller gave', 'query was hunter22', 'query was [hidden]'],
    ['hides secrets of others', 'whsec_abc v1,K5oZfzN95Z9UVu1= x', '[hidden] [hidden] x'],
    ['hides the signature', 'expected v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=', 'expected [hidden]'],
    ['hides credentials', 'Authorization: Bearer abcdef123', 'Authorization: [hidden] [hidden]'],
    ['hides credentials of a URL', 'postgres://app:hunter2@db/x', 'postgres://[hidden]@db/x'],
    ['hides the query of a URL', 'GET https://a.example/x?k=1', 'GET https://a.example/x?[hidden]'],
    [
      'hides named secrets',
      '{"password": "a b", "user_token":"t"}',
      '{"password": [hidden], "user_token":[hidden]}',
    ],
    ['hides e-mail addresses', 'no user ada@example.com.', 'no user [hidden]'],
    ['hides phone numbers and codes', 'code 123456 to +1 202-555-0143', 'code [hidden] to [hidden]'],
    ['shows statuses, times and short numbers', 'HTTP 503 after 30 s', 'HTTP 503 after 30 s'],
    ['hides long keys', 'id sk4live4eC39HqLyjWDarjtT1zdp7dc', 'id [hidden]'],
    ['has no direction marks', 'a\u202eb', 'a b'],
  ])('%s', (_, body, shown) => {
    expect(answerText(body, [secret, 'hunter22'])).toBe(shown)
  })

  test('is at most 500 characters', () => {
    expect(answerText('ab '.repeat(1000), [])).toBe(`${'ab '.repeat(166)}a…`)
  })
})

const failing = { events: 124, since: 0, triedAt: 1, error: 'HTTP 500', answer: null }

test.each([
  [{ disabledAt: null }, undefined, 'on', 'on'],
  [{ disabledAt: null }, failing, 'failing', 'failing: 124 events, HTTP 500'],
  [{ disabledAt: 1 }, failing, 'off', 'switched off: 124 events, HTTP 500'],
  [{ disabledAt: 1 }, undefined, 'off', 'switched off'],
] as const)('a webhook %p with %p is %s', (webhook, events, state, words) => {
  expect(webhookStateOf(webhook, events)).toBe(state)
  expect(webhookStateWords(state, events ?? null)).toBe(words)
})
