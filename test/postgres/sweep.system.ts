import { describe, expect, test } from 'bun:test'
import { queryOnce, startPostgres, withoutOwnPostgres } from '../support/postgres.ts'
import { openScene, tell } from './scene.ts'

if (withoutOwnPostgres) console.warn(withoutOwnPostgres)

/** Records who got or extended the lease of the cleanup, and until when. */
const watch = `
  CREATE TABLE sweeps (number int GENERATED ALWAYS AS IDENTITY, node text, at bigint, ends_at bigint);
  CREATE FUNCTION note_sweep() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO sweeps (node, at, ends_at) VALUES (session_user, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint, NEW.ends_at);
    RETURN NEW;
  END $$;
  CREATE TRIGGER sweeps AFTER INSERT OR UPDATE ON leases FOR EACH ROW WHEN (NEW.name = 'sweep') EXECUTE FUNCTION note_sweep();`

describe.skipIf(withoutOwnPostgres !== undefined)('of the nodes on one PostgreSQL', () => {
  test('one runs the expiry cleanup, and another takes over when that one is gone', async () => {
    await using postgres = await startPostgres()
    await using trace = await openScene(postgres)
    const query = (text: string, values: readonly unknown[] = []) =>
      queryOnce(trace.databaseUrl, text, values)
    await query(watch)
    /** Inserts more expired rows than one step of the cleanup reads. */
    const addOld = async () => {
      await query(
        `INSERT INTO codes_and_limits (subject, name, count, expires_at) SELECT 'old ' || number, 'minute', 1, 1 FROM generate_series(1, 1200) AS number`,
      )
      await query(
        "INSERT INTO console_links (token_sha256, expires_at) SELECT 'old ' || number, 1 FROM generate_series(1, 10) AS number",
      )
    }
    const swept = async () => {
      for (;;) {
        const [row] = await query(
          "SELECT (SELECT count(*) FROM codes_and_limits WHERE subject LIKE 'old%')::int + (SELECT count(*) FROM console_links)::int AS count",
        )
        if (row?.count === 0) return
        await Bun.sleep(50)
      }
    }
    const sweeps = async () => {
      const rows = await query('SELECT node, at, ends_at FROM sweeps ORDER BY number')
      return rows.map(({ node, at, ends_at }) => ({
        node: String(node),
        at: Number(at),
        endsAt: Number(ends_at),
      }))
    }

    const first = await Promise.all(['one', 'two', 'three'].map((name) => trace.start(name)))
    await addOld()
    await swept()
    const before = await sweeps()
    const sweepers = new Set(before.map(({ node }) => node))
    expect(sweepers.size).toBe(1)
    const sweeper = first.find(({ name }) => before[0]?.node.startsWith(`node_${name}_`))
    expect(sweeper).toBeDefined()

    await sweeper?.kill()
    await addOld()
    await swept()
    const all = await sweeps()
    const change = all.findIndex(({ node }) => !sweepers.has(node))
    const [last, next] = [all[change - 1], all[change]]
    if (!last || !next) throw new Error('no node has taken over the cleanup')
    // Not before the lease had expired, and one node alone.
    expect(next.at).toBeGreaterThanOrEqual(last.endsAt)
    expect(new Set(all.slice(change).map(({ node }) => node)).size).toBe(1)
    tell('sweep', { steps: all.length, takenOverAfterMs: next.at - last.at })
  })
})
