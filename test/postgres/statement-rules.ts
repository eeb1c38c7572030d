import { getTableColumns, getTableName, is } from 'drizzle-orm'
import { PgTable } from 'drizzle-orm/pg-core'
import { loadModule, parseSync } from 'libpg-query'
import { distributedTables } from '../../src/adapters/postgres/distribution.ts'
import { tables as schema } from '../../src/adapters/postgres/schema.ts'

// What the engines of docs/engineering/distributed.md refuse, or run badly, in the syntax tree of PostgreSQL's own parser.
// The codes of Citus are those of Citus 13.2.2, on a coordinator with two workers and the tables of distribution.ts.

await loadModule()

type Engine = 'Citus' | 'YugabyteDB' | 'CockroachDB'

export interface Rule {
  readonly name: string
  readonly engines: readonly Engine[]
  /** The error, or where the engine documents it. */
  readonly why: string
  readonly bad: readonly string[]
  readonly good: readonly string[]
  readonly isBroken: (statement: Statement) => boolean
}

type Node = Readonly<Record<string, unknown>>

/** A SELECT, INSERT, UPDATE or DELETE, without the ones inside it. */
interface Level {
  readonly kind: string
  readonly node: Node
  /** The levels around it, from the outermost. */
  readonly around: readonly Level[]
  /** Whether it is part of an expression, such as `IN (SELECT …)`. */
  readonly isExpression: boolean
  /** By name or alias. */
  readonly tables: ReadonlyMap<string, string>
  readonly hasOtherSources: boolean
}

export interface Statement {
  readonly tree: unknown
  readonly levels: readonly Level[]
}

/** @throws an error if PostgreSQL cannot parse it */
export function parsed(text: string): Statement {
  const tree = parseSync(text).stmts ?? []
  return { tree, levels: [...levelsIn(tree, [], false)] }
}

const levelKinds = ['SelectStmt', 'InsertStmt', 'UpdateStmt', 'DeleteStmt']

/** PostgreSQL leaves the kind out where only one is possible: the two sides of a UNION. */
function isLevel(kind: string, value: Node): boolean {
  return levelKinds.includes(kind) || (/^[lr]arg$/.test(kind) && 'limitOption' in value)
}

function* childrenOf(tree: unknown): Generator<readonly [kind: string, value: Node]> {
  if (Array.isArray(tree)) for (const each of tree) yield* childrenOf(each)
  else if (isNode(tree)) {
    for (const [kind, value] of Object.entries(tree)) {
      if (Array.isArray(value)) yield* childrenOf(value)
      else if (isNode(value)) yield [kind, value]
    }
  }
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null
}

/** @param isWhole also in the levels inside */
function* nodesIn(tree: unknown, kinds: readonly string[], isWhole: boolean): Generator<Node> {
  for (const [kind, value] of childrenOf(tree)) {
    if (kinds.includes(kind)) yield value
    if (isWhole || !isLevel(kind, value)) yield* nodesIn(value, kinds, isWhole)
  }
}

const has = (tree: unknown, ...kinds: string[]) => !nodesIn(tree, kinds, true).next().done
const ownNodes = (level: Level, ...kinds: string[]) => [...nodesIn(level.node, kinds, false)]

function* levelsIn(tree: unknown, around: readonly Level[], isExpression: boolean): Generator<Level> {
  for (const [kind, value] of childrenOf(tree)) {
    if (!isLevel(kind, value)) {
      yield* levelsIn(value, around, isExpression || kind === 'SubLink' || value.lateral === true)
      continue
    }
    const level = levelOf(kind, value, around, isExpression)
    yield level
    yield* levelsIn(value, [...around, level], false)
  }
}

function levelOf(kind: string, node: Node, around: readonly Level[], isExpression: boolean): Level {
  const sources = [...nodesIn([node.fromClause, node.usingClause], ['RangeVar'], false)]
  if (isNode(node.relation)) sources.push(node.relation)
  const named = sources.map(({ relname, alias }) => {
    const { aliasname } = isNode(alias) ? alias : {}
    return [String(aliasname ?? relname), String(relname)] as const
  })
  const others = [...nodesIn([node.fromClause, node.usingClause], ['RangeSubselect', 'RangeFunction'], false)]
  return { kind, node, around, isExpression, tables: new Map(named), hasOtherSources: others.length > 0 }
}

const keyOf = new Map(distributedTables.map(({ table, column }) => [table, column]))

/** Tables with the same value have their equal keys on one machine. */
const groupOf = new Map(distributedTables.map(({ table, colocateWith }) => [table, colocateWith ?? table]))

const columnsOf: ReadonlyMap<string, readonly string[]> = new Map(
  Object.values(schema)
    .filter((each) => is(each, PgTable))
    .map((table) => [getTableName(table), Object.values(getTableColumns(table)).map(({ name }) => name)]),
)

const distributedIn = ({ tables }: Pick<Level, 'tables'>) =>
  [...tables.values()].filter((table) => keyOf.has(table))

const readsDistributed = ({ levels }: Statement) => levels.some((level) => distributedIn(level).length > 0)

/** The parts of a name, such as `requests` and `at`. */
function wordsOf(names: unknown): readonly string[] {
  return Array.from(nodesIn(names, ['String'], true), ({ sval }) => String(sval))
}

/** Equal operands of a WHERE or ON in which all conditions must be true. */
function equalities(level: Level): readonly (readonly [Node, Node])[] {
  const conditions = [level.node.whereClause, ...ownNodes(level, 'JoinExpr').map(({ quals }) => quals)]
  return conditions.flatMap(conjunctsOf).flatMap(({ A_Expr: it }) => {
    if (!isNode(it) || it.kind !== 'AEXPR_OP' || wordsOf(it.name).join() !== '=') return []
    return isNode(it.lexpr) && isNode(it.rexpr) ? [[it.lexpr, it.rexpr] as const] : []
  })
}

function conjunctsOf(condition: unknown): readonly Node[] {
  if (!isNode(condition)) return []
  const { BoolExpr: both } = condition
  if (!isNode(both) || both.boolop !== 'AND_EXPR') return [condition]
  return Array.isArray(both.args) ? both.args.flatMap(conjunctsOf) : []
}

const columnIn = ({ ColumnRef: it }: Node) => (isNode(it) ? wordsOf(it.fields).at(-1) : undefined)

/** Whether it reads one key of each of its distributed tables. */
function hasOneKey(level: Level): boolean {
  const given = equalities(level).flatMap(([one, other]) =>
    columnIn(one) === undefined || columnIn(other) === undefined ? [columnIn(one) ?? columnIn(other)] : [],
  )
  return distributedIn(level).every((table) => given.includes(keyOf.get(table)))
}

/** Whether rows of both tables are on one machine, since the keys of both are compared. */
function isColocated(level: Level, one: string, other: string): boolean {
  const keys = [keyOf.get(one), keyOf.get(other)]
  return (
    groupOf.get(one) === groupOf.get(other) &&
    equalities(level).some(([left, right]) => {
      const columns = [columnIn(left), columnIn(right)]
      return columns.join() === keys.join() || columns.reverse().join() === keys.join()
    })
  )
}

/** Whether it uses a column of a level around it. */
function isCorrelated(level: Level): boolean {
  const own = [...level.tables.values()].flatMap((table) => columnsOf.get(table) ?? [])
  return ownNodes(level, 'ColumnRef').some(({ fields }) => {
    const [first = '', second] = wordsOf(fields)
    const isOuter = (table: Level) =>
      second === undefined
        ? [...table.tables.values()].some((each) => columnsOf.get(each)?.includes(first))
        : table.tables.has(first)
    const isOwn =
      second === undefined ? level.hasOtherSources || own.includes(first) : level.tables.has(first)
    return !isOwn && level.around.some(isOuter)
  })
}

function functionsIn(tree: unknown): readonly string[] {
  const calls = Array.from(
    nodesIn(tree, ['FuncCall'], true),
    ({ funcname }) => wordsOf(funcname).at(-1) ?? '',
  )
  return [...calls, ...Array.from(nodesIn(tree, ['SQLValueFunction'], true), () => 'now')]
}

const changing = new Set([
  ...['clock_timestamp', 'statement_timestamp', 'transaction_timestamp', 'timeofday', 'now'],
  ...['random', 'gen_random_uuid', 'uuidv4', 'uuidv7', 'nextval', 'currval', 'lastval', 'setval'],
])
const hasChanging = (tree: unknown) => functionsIn(tree).some((name) => changing.has(name))

const assignedIn = (list: unknown) => Array.from(nodesIn(list, ['ResTarget'], false), ({ name }) => name)

const ofLevels = (isBroken: (level: Level) => boolean) => (statement: Statement) =>
  statement.levels.some((level) => distributedIn(level).length > 0 && isBroken(level))
const ofKinds =
  (...kinds: string[]) =>
  ({ tree }: Statement) =>
    has(tree, ...kinds)

export const rules: readonly Rule[] = [
  {
    name: 'functions, triggers, rules and DO blocks',
    engines: ['Citus', 'CockroachDB'],
    why: 'Citus: XX000 triggers are not supported on distributed tables. https://www.cockroachlabs.com/docs/v25.4/known-limitations',
    bad: [
      'CREATE TRIGGER changed AFTER UPDATE ON requests FOR EACH ROW EXECUTE FUNCTION note()',
      "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
      "DO 'BEGIN END'",
    ],
    good: ['DROP TRIGGER changed ON requests', 'DROP FUNCTION note'],
    isBroken: ofKinds('CreateTrigStmt', 'CreateFunctionStmt', 'CreateEventTrigStmt', 'RuleStmt', 'DoStmt'),
  },
  {
    name: 'LISTEN and NOTIFY',
    engines: ['YugabyteDB', 'CockroachDB'],
    why: 'https://github.com/yugabyte/yugabyte-db/issues/1872 https://github.com/cockroachdb/cockroach/issues/41522',
    bad: ['LISTEN changes', "NOTIFY changes, 'brand'", "SELECT pg_notify('changes', '')"],
    good: ['SELECT number FROM revision'],
    isBroken: ({ tree }) =>
      has(tree, 'ListenStmt', 'NotifyStmt', 'UnlistenStmt') || functionsIn(tree).includes('pg_notify'),
  },
  {
    name: 'table locks',
    engines: ['YugabyteDB', 'CockroachDB'],
    why: 'https://github.com/yugabyte/yugabyte-db/issues/5384',
    bad: ['LOCK TABLE requests IN SHARE ROW EXCLUSIVE MODE'],
    good: ['SELECT number FROM revision WHERE id = 1 FOR UPDATE'],
    isBroken: ofKinds('LockStmt'),
  },
  {
    name: 'advisory locks',
    engines: ['YugabyteDB', 'CockroachDB'],
    why: 'https://docs.yugabyte.com/stable/explore/transactions/explicit-locking https://github.com/cockroachdb/cockroach/issues/13546',
    bad: ['SELECT pg_advisory_xact_lock(1)', 'SELECT pg_try_advisory_lock(hashtext($1))'],
    good: ['SELECT hashtext($1)'],
    isBroken: ({ tree }) => functionsIn(tree).some((name) => name.includes('advisory')),
  },
  {
    name: 'isolation levels other than READ COMMITTED',
    engines: ['YugabyteDB', 'CockroachDB'],
    why: '40001 for concurrent transactions; https://www.cockroachlabs.com/docs/v25.4/transaction-retry-error-reference',
    bad: [
      'BEGIN',
      'BEGIN ISOLATION LEVEL SERIALIZABLE',
      'SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ',
    ],
    good: ['BEGIN ISOLATION LEVEL READ COMMITTED', 'COMMIT', 'ROLLBACK', 'SET LOCAL lock_timeout = 1'],
    isBroken: ({ tree }) => {
      const begins = [...nodesIn(tree, ['TransactionStmt'], true)].filter(({ kind }) =>
        ['TRANS_STMT_BEGIN', 'TRANS_STMT_START'].includes(String(kind)),
      )
      const levels = [...nodesIn(tree, ['DefElem'], true)].filter(
        ({ defname }) => defname === 'transaction_isolation',
      )
      return (
        levels.some(({ arg }) => wordsOf(arg).join() + sval(arg) !== 'read committed') ||
        begins.length > levels.length
      )
    },
  },
  {
    name: 'array elements',
    engines: ['Citus'],
    why: 'Citus 13.2.0 and later crash on SET x = a[i]',
    bad: [
      'UPDATE codes_and_limits SET count = ($1::bigint[])[2] WHERE subject = $2',
      'SELECT ($1::text[])[1:2]',
    ],
    good: ['SELECT * FROM unnest($1::text[])'],
    isBroken: ofKinds('A_Indices'),
  },
  {
    name: 'row locks without the key of a distributed table',
    engines: ['Citus'],
    why: '0A000 could not run distributed query with FOR UPDATE/SHARE commands',
    bad: [
      'SELECT name FROM codes_and_limits WHERE subject = any($1) FOR UPDATE',
      'SELECT name FROM codes_and_limits WHERE subject IN ($1, $2) FOR UPDATE',
      'SELECT name FROM codes_and_limits WHERE subject = $1 OR name = $2 FOR UPDATE',
      'WITH old AS (SELECT key FROM delivery_reports WHERE at < $1 FOR UPDATE) SELECT * FROM old',
      'DELETE FROM requests WHERE request_id IN (SELECT request_id FROM requests LIMIT 9 FOR UPDATE SKIP LOCKED)',
    ],
    good: [
      'SELECT name FROM codes_and_limits WHERE subject = $1 ORDER BY name FOR UPDATE',
      'DELETE FROM outbox WHERE id IN (SELECT id FROM outbox WHERE created_at < $1 LIMIT 9 FOR UPDATE SKIP LOCKED)',
      "SELECT codes_and_limits.name FROM codes_and_limits WHERE ($1 = codes_and_limits.subject AND name <> '') FOR UPDATE",
    ],
    isBroken: ofLevels((level) => 'lockingClause' in level.node && !hasOneKey(level)),
  },
  {
    name: 'functions with changing results in writes of a distributed table',
    engines: ['Citus'],
    why: '0A000 functions used in UPDATE queries on distributed tables must not be VOLATILE; in DO UPDATE SET they must be IMMUTABLE',
    bad: [
      'UPDATE requests SET at = extract(epoch FROM clock_timestamp()) WHERE request_id = $1',
      'DELETE FROM codes_and_limits WHERE expires_at < extract(epoch FROM clock_timestamp())',
      'INSERT INTO stats VALUES ($1) ON CONFLICT (part) DO UPDATE SET at = extract(epoch FROM now())',
      'INSERT INTO stats VALUES ($1) ON CONFLICT (part) DO UPDATE SET at = extract(epoch FROM CURRENT_TIMESTAMP)',
    ],
    good: [
      'UPDATE leases SET ends_at = extract(epoch FROM clock_timestamp())',
      'UPDATE requests SET at = greatest(at, $2) WHERE request_id = $1',
      'INSERT INTO requests (request_id, at) VALUES ($1, extract(epoch FROM clock_timestamp()))',
    ],
    isBroken: ofLevels(({ kind, node }) =>
      hasChanging(kind === 'InsertStmt' ? node.onConflictClause : kind === 'SelectStmt' ? [] : node),
    ),
  },
  {
    name: 'functions with changing results beside rows of a distributed table',
    engines: ['Citus'],
    why: 'a query of one machine is evaluated there, so the time is the time of that machine',
    bad: [
      'SELECT extract(epoch FROM clock_timestamp()) FROM codes_and_limits WHERE subject = $1',
      'SELECT * FROM (SELECT clock_timestamp() AS at) AS clock LEFT JOIN codes_and_limits ON subject = $1',
    ],
    good: ['SELECT clock_timestamp()', 'SELECT clock_timestamp() FROM revision WHERE id = 1'],
    isBroken: ({ tree, levels }) =>
      readsDistributed({ tree, levels }) &&
      levels.some(({ kind, node }) => kind === 'SelectStmt' && !('valuesLists' in node) && hasChanging(node)),
  },
  {
    name: 'changes of the key of a distributed table',
    engines: ['Citus'],
    why: '0A000 modifying the partition value of rows is not allowed',
    bad: [
      'UPDATE codes_and_limits SET subject = $1 WHERE subject = $2',
      'INSERT INTO delivery_reports VALUES ($1, $2, $3, $4) ON CONFLICT (key) DO UPDATE SET key = excluded.key',
    ],
    good: [
      'UPDATE brands SET slug = $1 WHERE slug = $2',
      'UPDATE requests SET report_key = $1 WHERE request_id = $2',
      'INSERT INTO delivery_reports (key, at) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET at = excluded.at',
    ],
    isBroken: ofLevels((level) => {
      const { kind, node } = level
      const conflict = isNode(node.onConflictClause) ? node.onConflictClause : {}
      const assigned = assignedIn(kind === 'UpdateStmt' ? node.targetList : conflict.targetList)
      return distributedIn(level).some((table) => assigned.includes(keyOf.get(table)))
    }),
  },
  {
    name: 'joins of distributed tables on other columns than their keys',
    engines: ['Citus'],
    why: 'XX000 the query contains a join that requires repartitioning; 0A000 complex joins are only supported when all distributed tables are co-located and joined on their distribution columns',
    bad: [
      'SELECT 1 FROM requests JOIN delivery_reports ON report_key = key',
      'SELECT 1 FROM requests, attempts WHERE requests.app = attempts.app',
      'UPDATE requests SET at = delivery_reports.at FROM delivery_reports WHERE key = report_key',
      'DELETE FROM attempts USING stats WHERE stats.at = attempts.at',
    ],
    good: [
      'SELECT 1 FROM requests JOIN attempts ON attempts.request_id = requests.request_id',
      'SELECT 1 FROM requests JOIN brands ON slug = brand',
    ],
    isBroken: ofLevels((level) => {
      const [first = '', ...others] = distributedIn(level)
      return others.some((other) => !isColocated(level, first, other))
    }),
  },
  {
    name: 'correlated subqueries, except of distributed tables on equal keys',
    engines: ['Citus'],
    why: '0A000 complex joins are only supported when all distributed tables are co-located and joined on their distribution columns; 0A000 direct joins between distributed and local tables are not supported',
    bad: [
      'SELECT (SELECT status FROM delivery_reports WHERE key = report_key) FROM requests',
      'SELECT 1 FROM requests WHERE EXISTS (SELECT 1 FROM delivery_reports WHERE key = requests.report_key)',
      'SELECT 1 FROM requests WHERE EXISTS (SELECT 1 FROM brands WHERE slug = brand)',
      'UPDATE brands SET color = $1 WHERE EXISTS (SELECT 1 FROM requests WHERE slug = brand)',
      'UPDATE requests SET guard = $1 WHERE EXISTS (SELECT 1 FROM requests AS other WHERE other.app = requests.app)',
      'SELECT 1 FROM requests, LATERAL (SELECT 1 FROM attempts WHERE attempts.app = requests.app) AS one',
    ],
    good: [
      'UPDATE notify_orders SET content = $1 WHERE NOT EXISTS (SELECT 1 FROM notify_jobs WHERE notify_jobs.request_id = notify_orders.request_id)',
      'SELECT 1 FROM alerts WHERE EXISTS (SELECT 1 FROM alert_deliveries WHERE alert_deliveries.key = alerts.key)',
      'SELECT 1 FROM requests WHERE brand IN (SELECT slug FROM brands)',
    ],
    isBroken: ({ levels }) =>
      levels.some((level) => {
        const outer = level.around.at(-1)
        if (!outer || !level.isExpression || !isCorrelated(level)) return false
        const [own = [], others = []] = [level, outer].map(distributedIn)
        if (own.length + others.length === 0) return false
        return !own.some((one) => others.some((other) => isColocated(level, one, other)))
      }),
  },
  {
    name: 'subqueries of many rows of a distributed table',
    engines: ['Citus'],
    why: 'the coordinator copies all their rows to the workers; https://docs.citusdata.com/en/stable/develop/reference_processing.html',
    bad: [
      'DELETE FROM delivery_reports WHERE key IN (SELECT report_key FROM requests WHERE at < $1)',
      'SELECT 1 FROM requests WHERE report_key IN (SELECT key FROM delivery_reports)',
    ],
    good: [
      'DELETE FROM requests WHERE request_id IN (SELECT request_id FROM requests WHERE request_id < $1 LIMIT 1000)',
      'SELECT 1 FROM delivery_reports WHERE key IN (SELECT report_key FROM requests WHERE request_id = $1)',
      'UPDATE requests SET at = $1 WHERE at < (SELECT min(at) FROM requests)',
    ],
    isBroken: ofLevels(
      (level) =>
        level.isExpression &&
        !isCorrelated(level) &&
        !hasOneKey(level) &&
        !('limitCount' in level.node) &&
        !functionsIn(level.node.targetList).some((name) => ['min', 'max', 'count'].includes(name)),
    ),
  },
  {
    name: 'subqueries in ON CONFLICT of a distributed table',
    engines: ['Citus'],
    why: '0A000 subqueries are not supported within INSERT queries',
    bad: [
      'INSERT INTO requests (request_id) VALUES ($1) ON CONFLICT (request_id) DO UPDATE SET guard = (SELECT 1)',
    ],
    good: ['INSERT INTO requests (request_id) SELECT $1 ON CONFLICT (request_id) DO NOTHING'],
    isBroken: ofLevels(({ node }) => has(node.onConflictClause, 'SubLink')),
  },
  {
    name: 'GROUPING SETS, CUBE and ROLLUP of a distributed table',
    engines: ['Citus'],
    why: '0A000 could not run distributed query with GROUPING SETS, CUBE, or ROLLUP',
    bad: ['SELECT app, count(*) FROM requests GROUP BY ROLLUP (app)'],
    good: ['SELECT app, count(*) FROM requests GROUP BY app'],
    isBroken: ofLevels(({ node }) => has(node.groupClause, 'GroupingSet')),
  },
  {
    name: 'recursive queries of a distributed table',
    engines: ['Citus'],
    why: '0A000 recursive CTEs are only supported when they contain a filter on the distribution column',
    bad: [
      'WITH RECURSIVE ids AS (SELECT request_id FROM requests UNION SELECT request_id FROM ids) SELECT * FROM ids',
    ],
    good: ['WITH ids AS (SELECT request_id FROM requests LIMIT 9) SELECT * FROM ids'],
    isBroken: (statement) =>
      readsDistributed(statement) &&
      [...nodesIn(statement.tree, ['withClause'], true)].some(({ recursive }) => recursive === true),
  },
  {
    name: 'unique indexes without the key of a distributed table',
    engines: ['Citus'],
    why: '0A000 creating unique indexes on non-partition columns is currently unsupported',
    bad: ['CREATE UNIQUE INDEX one ON requests (report_key)'],
    good: [
      'CREATE UNIQUE INDEX one ON requests (report_key, request_id)',
      'CREATE INDEX many ON requests (app)',
    ],
    isBroken: ({ tree }) =>
      [...nodesIn(tree, ['IndexStmt'], true)].some(({ unique, relation, indexParams }) => {
        const key = isNode(relation) ? keyOf.get(String(relation.relname)) : undefined
        const names = Array.from(nodesIn(indexParams, ['IndexElem'], true), ({ name }) => name)
        return unique === true && key !== undefined && !names.includes(key)
      }),
  },
]

function sval(tree: unknown): string {
  return Array.from(nodesIn(tree, ['sval'], true), ({ sval }) => String(sval)).join()
}

/** The tables that it reads, or writes in this way. */
export function tablesOf({ levels }: Statement, kind: string): readonly string[] {
  return levels.filter((level) => level.kind === kind).flatMap(({ tables }) => [...tables.values()])
}
