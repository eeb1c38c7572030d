import { expect, test } from 'bun:test'
import { detailWords } from '../../src/domain/operator/audit-words.ts'

test.each([
  ['brand.created', 'displayName', '- → Acme', 'Name: none → Acme'],
  [
    'brand.changed',
    'notifyTemplates',
    '[] → ["ORDER_PLACED","ORDER_DELIVERED"]',
    'Notify templates: none → ORDER_PLACED, ORDER_DELIVERED',
  ],
  ['brand.changed', 'loginIdEnabled', 'false → true', 'Include the login ID: no → yes'],
  ['budget.set', 'amount', '20.00 EUR', 'Amount: 20.00 EUR'],
  ['unknown.action', 'reason', '', 'Reason: none'],
])('%s %s: %s is %p', (action, name, value, expected) => {
  expect(detailWords(action, name, value).join(': ')).toBe(expected)
})
