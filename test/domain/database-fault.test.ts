import { expect, test } from 'bun:test'
import {
  databaseFault,
  databaseTimeout,
  UnusableDatabase,
  unsavedWords,
} from '../../src/domain/health/database-fault.ts'

const failure = (code: string, name = 'SqliteError') => Object.assign(new Error('of SQLite'), { code, name })

test.each([
  [failure('SQLITE_BUSY'), 'Another process has locked the database.', false],
  [failure('SQLITE_BUSY_SNAPSHOT'), 'Another process has locked the database.', false],
  [failure('SQLITE_FULL'), 'The disk of the database is full.', false],
  [failure('53100', 'StatementError'), 'The disk of the database is full.', false],
  [failure('SQLITE_READONLY_DBMOVED'), 'The database is read-only.', false],
  [failure('25006', 'DatabaseUnavailable'), 'The database is read-only.', false],
  [failure('SQLITE_CORRUPT'), 'The database is damaged.', false],
  [failure('SQLITE_IOERR_FSYNC'), 'The disk of the database has errors.', true],
  [failure('DISK_TIMEOUT'), 'The disk of the database does not answer.', true],
  [failure('57014', 'DatabaseUnavailable'), 'PostgreSQL cancelled a statement that took too long.', false],
  [failure('ECONNREFUSED', 'DatabaseUnavailable'), 'PostgreSQL does not answer.', false],
  [failure('ECONNRESET', 'DatabaseUnavailable'), 'PostgreSQL does not answer.', true],
  [databaseTimeout(), 'The database does not answer.', true],
])('%p: %s', (error, text, isUncertain) => {
  expect(databaseFault(error)).toMatchObject({ text, isUncertain })
})

test('other errors are no faults of the database', () => {
  expect([failure('ECONNREFUSED'), new Error('of code'), 'text'].map(databaseFault)).toEqual([
    undefined,
    undefined,
    undefined,
  ])
})

test('a change says whether it was saved, and one that was not tried was not', () => {
  const hanging = databaseFault(failure('DISK_TIMEOUT'))
  if (!hanging) throw new Error('no fault')
  expect(unsavedWords(hanging)).toStartWith('It is unknown whether the change was saved.')
  const untried = databaseFault(new UnusableDatabase(hanging))
  expect(untried && unsavedWords(untried)).toStartWith('The change was not saved.')
})
