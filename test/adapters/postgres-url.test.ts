import { describe, expect, test } from 'bun:test'
import { readPostgresUrl } from '../../src/adapters/postgres/url.ts'
import { readConfig } from '../../src/config/config.ts'
import { ConfigError } from '../../src/config/settings.ts'

const secretKey = 's'.repeat(32)
const password = 'hush-hush'
const remote = `postgres://otpost:${password}@db.example.com:5433/codes`

function problemsWith(env: Readonly<Record<string, string>>): readonly string[] {
  try {
    readConfig(env)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

describe('a PostgreSQL URL', () => {
  test.each([
    ['postgres://localhost/codes', 'off'],
    ['postgresql://otpost@127.0.0.1/codes', 'off'],
    ['postgres://[::1]:5432/codes', 'off'],
    [`${remote}?sslmode=disable`, 'off'],
    [`${remote}?sslmode=require`, 'require'],
    [`${remote}?sslmode=verify-ca&sslrootcert=/etc/ca.pem`, 'verify-ca'],
    [`${remote}?sslmode=verify-full`, 'verify-full'],
  ])('%s', (url, mode) => {
    const { server, problems } = readPostgresUrl(url)
    expect(problems).toEqual([])
    expect(server.tls.mode).toBe(mode as typeof server.tls.mode)
    expect(server.url).not.toContain('?')
  })

  test('may name TLS files', () => {
    const { server } = readPostgresUrl(`${remote}?sslmode=verify-full&sslrootcert=ca&sslcert=cert&sslkey=key`)
    expect(server.tls).toEqual({ mode: 'verify-full', caFile: 'ca', certFile: 'cert', keyFile: 'key' })
  })

  test.each([
    ['postgres://', 'must name a host and a database'],
    ['postgres://db.example.com', 'must name a host and a database'],
    ['postgres:///codes', 'must name a host and a database'],
    [remote, 'must say sslmode'],
    [`${remote}?sslmode=prefer`, 'could turn TLS off'],
    [`${remote}?sslmode=allow`, 'could turn TLS off'],
    [`${remote}?sslmode=constructor`, 'must have one of these as sslmode'],
    [`${remote}?sslmode=disable&sslmode=verify-full`, 'must say sslmode once'],
    [`${remote}?sslmode=disable&sslrootcert=ca`, 'has sslrootcert, but sslmode=disable'],
    [`${remote}?sslmode=require&sslrootcert=ca`, 'has sslrootcert, but sslmode=require'],
    [`${remote}?sslmode=verify-full&sslrootcert=`, 'must give sslrootcert a value'],
    [`${remote}?sslmode=verify-full&sslcert=cert`, 'must have both of sslcert and sslkey'],
    [`${remote}?sslmode=verify-full&options=-c%20x`, 'has the parameter options, which is not known'],
    ['postgres://otpost:p%zz@localhost/codes', 'has a % that is no code of a character'],
    ['postgres://otpost:p%ff@localhost/codes', 'has a % that is no code of a character'],
  ])('is rejected if it is %s', (url, words) => {
    const problems = problemsWith({ DATABASE_URL: url, SECRET_KEY: secretKey })
    expect(problems.join('\n')).toContain(words)
    for (const problem of problems) expect(problem).toStartWith('DATABASE_URL ')
    expect(problems.join('\n')).not.toContain(password)
  })
})

describe('with PostgreSQL', () => {
  const DATABASE_URL = `${remote}?sslmode=verify-full`

  test('SECRET_KEY is required', () => {
    expect(problemsWith({ DATABASE_URL }).join()).toStartWith('SECRET_KEY must be set')
    expect(problemsWith({ DATABASE_URL, SECRET_KEY: secretKey })).toEqual([])
  })

  test('displayed settings have neither user nor password', () => {
    const { inForce, database } = readConfig({ DATABASE_URL, SECRET_KEY: secretKey })
    expect(inForce.find(({ name }) => name === 'DATABASE_URL')).toMatchObject({
      name: 'DATABASE_URL',
      source: 'environment',
      value: 'postgres://db.example.com:5433/codes',
    })
    expect(database.name).toBe('postgres://db.example.com:5433/codes')
    expect(JSON.stringify(inForce)).not.toContain(password)
  })

  test('the pool has its size and time-outs', () => {
    const { database } = readConfig({
      ...{ DATABASE_URL, SECRET_KEY: secretKey, DATABASE_POOL_SIZE: '3', DATABASE_BATCH_SIZE: '1' },
      ...{
        DATABASE_CONNECT_TIMEOUT_MS: '100',
        DATABASE_STATEMENT_TIMEOUT_MS: '200',
        DATABASE_PGBOUNCER: '1',
      },
    })
    expect(database).toMatchObject({
      kind: 'postgres',
      target: { poolSize: 3, batchSize: 1, connectTimeoutMs: 100, statementTimeoutMs: 200, isPooled: true },
    })
  })
})
