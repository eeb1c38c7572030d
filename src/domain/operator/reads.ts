import { type Numbers, ruleListing } from '../delivery/destination.ts'
import { auditListing } from '../ground/audit.ts'
import { canonicalTag } from '../ground/languages.ts'
import { type Listing, rowOf } from '../ground/listing.ts'
import { InvalidInput, OperatorError } from '../ground/operator-error.ts'
import { isoTime } from '../ground/time.ts'
import { modeWords } from '../guard/mode.ts'
import { type HealthPorts, readBudgets } from '../health/facts.ts'
import type { EventLogReader } from '../log/event-log.ts'
import { explain } from '../log/explain.ts'
import { callRow, deliveryRow, traceRow } from '../log/log-rows.ts'
import {
  type CallFilter,
  callResults,
  calls,
  type DeliveryFilter,
  errorClasses,
  type Found,
  type LogFilter,
  type LogPosition,
  positionIn,
  positionText,
  statusesIn,
  statusKeys,
  wordOf,
} from '../log/log-search.ts'
import type { ReplayReader } from '../log/replay.ts'
import { budgetListing, withCallCap } from '../money/budgets.ts'
import type { PriceList } from '../money/prices.ts'
import { type DaySpend, spendingPeriods, spendingSpan } from '../money/spending.ts'
import { jobListing } from '../notify/queue.ts'
import { manageTokenListing } from '../policy/policy-store.ts'
import { relayListing } from '../policy/relay.ts'
import { activeReviewNumbers, reviewNumberListing } from '../policy/review-number.ts'
import type { Group } from './action.ts'
import type { ActionPorts } from './actions.ts'
import { appRows } from './app-rows.ts'
import { brandRow } from './brands.ts'
import { authoredRules, destinationGroup, listedRules } from './destinations.ts'
import {
  changeList,
  type Entered,
  type Fields,
  field,
  type InputOf,
  inputIn,
  instantIn,
  list,
  oneOf,
  optional,
  requestIdIn,
  someOf,
  text,
  texts,
  wholeNumber,
} from './fields.ts'
import { type GuardStatusPorts, readGuardStatus } from './guard.ts'
import { tokenGroup } from './manage-tokens.ts'
import { budgetGroup } from './money.ts'
import { listJobs } from './queue.ts'
import { relayGroup } from './relays.ts'
import { requestRow } from './requests.ts'
import { reviewNumberGroup } from './review-numbers.ts'
import { mostRead, readRoutes, routeListing } from './routes.ts'
import { mobilePrices, whatIf, whatIfRow } from './whatif.ts'

// What operators read, for the management API (design D57). Names, fields and rows are those of the commands.

type HealthReads = Pick<HealthPorts, 'budgets' | 'alerts'>

export interface ReadPorts extends ActionPorts, HealthReads, GuardStatusPorts {
  readonly eventLog: ActionPorts['eventLog'] &
    ReplayReader &
    Pick<EventLogReader, 'trace' | 'deliveries' | 'findDeliveries' | 'findCalls'> & {
      spending(from: number, until: number): Promise<readonly DaySpend[]>
    }
  readonly smsCountries: readonly string[]
  readonly isCountry: (code: string) => boolean
  readonly exampleOf: Numbers['exampleOf']
  readonly limits: { readonly phonePerHour: number }
  readonly priceList: () => Promise<PriceList>
}

/** What operators read. Every role may. */
interface OperatorRead {
  /** As the command. */
  readonly name: string
  readonly does: string
  readonly fields: Fields
  /** @throws InvalidInput, OperatorError */
  readonly run: (ports: ReadPorts, entered: Entered) => Promise<object>
}

function read<All extends Fields>(
  name: string,
  does: string,
  fields: All,
  run: (ports: ReadPorts, input: InputOf<All>) => Promise<object>,
): OperatorRead {
  return { name, does, fields, run: (ports, entered) => run(ports, inputIn(fields, entered)) }
}

function rowsRead(
  name: string,
  does: string,
  rows: (ports: ReadPorts) => Promise<readonly object[]>,
): OperatorRead {
  return read(name, does, {}, async (ports) => ({ rows: await rows(ports) }))
}

/** What a list needs of `ReadPorts`. Commands have it too. */
interface ListPorts extends HealthReads, Pick<ActionPorts, 'policy' | 'now' | 'ownUrl' | 'routing'> {}

type Load<Row> = (ports: ListPorts) => Promise<readonly [rows: readonly Row[], listing: Listing<Row>]>

/** A list whose rows the API, `--json` and the table of its command share. */
interface OperatorList {
  readonly group: Group
  readonly does: string
  /** Instead of an empty table. */
  readonly none: string
  read<Result>(
    ports: ListPorts,
    use: <Row>(rows: readonly Row[], listing: Listing<Row>) => Result,
  ): Promise<Result>
}

function listed<Row>(group: Group, does: string, none: string, load: Load<Row>): OperatorList {
  return { group, does, none, read: async (ports, use) => use(...(await load(ports))) }
}

/** Their commands are `GROUP list`. */
export const lists: readonly OperatorList[] = [
  listed(
    budgetGroup,
    'list the budgets, with what was spent and what remains',
    'There are no budgets: the cost of SMS is not limited.',
    async (ports) => {
      const { others } = (await ports.routing()).routes
      const budgets = withCallCap((await ports.policy.rows()).budgets, others.voice)
      return [await readBudgets(ports, budgets, ports.now()), budgetListing]
    },
  ),
  listed(
    destinationGroup,
    'list the rules, including those of SMS_COUNTRIES',
    'There are no rules: SMS go to every country, except to premium-rate, shared-cost, pager and satellite numbers.',
    async ({ policy, routing }) => [
      listedRules((await routing()).smsCountries, (await policy.rows()).rules),
      ruleListing,
    ],
  ),
  listed(
    relayGroup,
    'list the relays with their URLs',
    'There are no relays.',
    async ({ policy, ownUrl }) => [(await policy.rows()).relays, relayListing(await ownUrl())],
  ),
  listed(
    reviewNumberGroup,
    'list the review numbers',
    'There are no review numbers.',
    async ({ policy, now }) => [
      activeReviewNumbers((await policy.rows()).reviewNumbers, now()),
      reviewNumberListing,
    ],
  ),
  listed(tokenGroup, 'list the tokens of the management API', 'There are no tokens.', async ({ policy }) => [
    (await policy.rows()).manageTokens,
    manageTokenListing,
  ]),
]

/** No form has it. */
function filter<Value>(read: Parameters<typeof optional<Value>>[0], as: string, help: string) {
  return optional(read, { label: '', as, help })
}

const logFields = {
  to: filter(text, '--to <recipient>', 'only to this phone number or e-mail address'),
  provider: filter(text, '--provider <name>', 'only with an attempt of this provider'),
  app: filter(text, '--app <appId>', 'only of this app'),
  brand: filter((slug) => slug.trim().toLowerCase(), '--brand <slug>', 'only of this brand'),
  channel: filter(
    oneOf('channel', ['SMS', 'EMAIL'] as const),
    '--channel <channel>',
    'only SMS, or only e-mail',
  ),
  country: filter(
    (code) => code.trim().toUpperCase(),
    '--country <code>',
    'only SMS to this country, such as GB',
  ),
  since: filter(text, '--since <when>', 'only later: 30m, 12h, 7d, or a time such as 2026-11-21T14:00Z'),
  until: filter(text, '--until <when>', 'only earlier, in the same form'),
} as const

/** The filters of the delivery log. */
export const deliveryFields = {
  request: filter(requestIdIn, '--request <id>', 'only of this request'),
  ...logFields,
  status: list(someOf('status', statusKeys.map(wordOf)), {
    label: '',
    as: '--status <status...>',
    help: `only with these statuses: ${statusKeys.map(wordOf).join(', ')}`,
  }),
  template: filter(text, '--template <key>', 'only messages of this template'),
  lang: filter((tag) => canonicalTag(tag) ?? tag, '--lang <tag>', 'only texts in this language, such as hi'),
  error: filter(oneOf('cause', errorClasses), '--error <class>', 'only failures with this cause'),
} as const

/** The filters of the calls of apps. */
export const callFields = {
  ...logFields,
  call: filter(oneOf('call', keysOf(calls)), '--call <call>', 'only calls of this kind'),
  result: filter(oneOf('result', keysOf(callResults)), '--result <result>', 'only calls with this result'),
} as const

const sinceField = field(text, {
  label: '',
  help: 'from this time on: 12h, 7d, or a time in ISO 8601',
  byDefault: '7d',
})

const limit = field(wholeNumber('limit', 1, 1000), {
  label: '',
  help: 'how many rows, at most 1000',
  byDefault: '100',
})

const paging = {
  limit,
  next: optional(nextIn, { label: '', help: 'the `next` of the previous page' }),
} as const

/** Every read. */
export const reads: readonly OperatorRead[] = [
  rowsRead('brand list', 'list the brands', async ({ brands }) => (await brands.list()).map(brandRow)),
  rowsRead('app list', 'list the apps with their scope, their keys and their webhook', appRows),
  ...lists.map((each) =>
    rowsRead(`${each.group.name} list`, each.does, (ports) =>
      each.read(ports, (rows, listing) => rows.map((row) => rowOf(listing, row))),
    ),
  ),
  read('request list', 'list the access requests', { limit }, async ({ requests }, { limit }) => ({
    rows: (await requests.list({ limit })).map(requestRow),
  })),
  read('audit', 'list the audit log, newest first', { limit }, async ({ audit }, { limit }) => ({
    rows: (await audit.list({ limit })).map((record) => rowOf(auditListing, record)),
  })),
  read('guard status', 'what the guard knows and blocks', {}, async (ports) =>
    readGuardStatus(ports, { guard: await ports.guardMode(), smsCountries: ports.smsCountries }),
  ),
  read(
    'spending',
    'what SMS cost, by day, currency, country, app, brand and provider',
    {
      period: field(oneOf('period', spendingPeriods), {
        label: 'Period',
        help: spendingPeriods.join(', '),
        byDefault: '7-days',
      }),
    },
    async ({ eventLog, now }, { period }) => {
      const { from, until } = spendingSpan(period, now())
      const days = await eventLog.spending(from, until)
      return {
        rows: days.map(({ at, micros, ...spend }) => ({
          day: isoTime(at).slice(0, 10),
          ...spend,
          amount: micros / 1e6,
        })),
      }
    },
  ),
  read(
    'deliveries',
    'list the delivery log: each attempt with its provider, outcome and delivery report; newest first',
    { ...deliveryFields, ...paging },
    async (ports, { next: before, limit, ...filters }) =>
      pageOf(
        await ports.eventLog.findDeliveries(deliveryFilter(ports, filters), { before, limit }),
        deliveryRow,
      ),
  ),
  read(
    'requests',
    'list the calls of apps with their result and its reason; newest first',
    { ...callFields, ...paging },
    async (ports, { next: before, limit, ...filters }) =>
      pageOf(await ports.eventLog.findCalls(callFilter(ports, filters), { before, limit }), callRow),
  ),
  read(
    'queue list',
    'list jobs that wait, are in flight, or can be retried',
    { app: logFields.app },
    async ({ jobs }, { app: appId }) => ({
      rows: (await listJobs({ jobs }, { appId })).map((job) => rowOf(jobListing, job)),
    }),
  ),
  read(
    'routes',
    'delivery, conversion and cost of each provider by country, and the order that they suggest',
    { since: sinceField },
    async (ports, { since }) => {
      const now = ports.now()
      const from = instantIn(since, now, 'since')
      const found = await readRoutes(ports, await ports.routing(), now, from, mostRead)
      const rows = found.rows.map((row) => rowOf(routeListing, row))
      return { ...found, since: isoTime(found.since), rows }
    },
  ),
  read(
    'whatif',
    'what other settings would have denied of the codes in the event log, and saved',
    {
      since: sinceField,
      guard: filter(oneOf('guard', keysOf(modeWords)), '', 'the mode of the guard'),
      countries: changeList(texts, { label: '', help: 'SMS_COUNTRIES, such as IN and GB' }),
      phoneHour: filter(wholeNumber('phoneHour', 1, 999_999), '', 'PHONE_LIMIT_PER_HOUR'),
    },
    async (ports, { since: from, ...given }) => {
      if (!given.countries?.every(ports.isCountry) && given.countries)
        throw new InvalidInput('countries must be country codes of two letters, such as GB.')
      const prices = mobilePrices(await ports.priceList(), ports.exampleOf)
      const server = { ...ports, ...ports.limits, guard: await ports.guardMode(), prices }
      const since = instantIn(from, ports.now(), 'since')
      const found = await whatIf(ports, server, given, { since, most: mostRead })
      return { ...whatIfRow(found), unknown: found.unknown }
    },
  ),
  read(
    'explain',
    'the trace of one request: checks, limits, providers and delivery reports',
    { requestId: field(requestIdIn, { label: 'Request', help: 'the requestId of the answer' }) },
    async (ports, { requestId }) => {
      const found = await explained(ports, requestId)
      if (!found) throw new OperatorError(`Request ${requestId} is not in the event log.`)
      const { opening, checks } = found.explanation
      return { ...explainedRow(found), opening, checks }
    },
  ),
]

type ExplainPorts = Pick<ReadPorts, 'policy' | 'audit' | 'smsCountries'> & {
  readonly eventLog: Pick<EventLogReader, 'trace' | 'deliveries'>
  readonly jobs: Pick<ReadPorts['jobs'], 'ofRequest'>
}

/** Undefined: the event log does not have the request. */
export async function explained(ports: ExplainPorts, requestId: string, mostDeliveries = 10_000) {
  const [trace, deliveries, jobs, rules] = await Promise.all([
    ports.eventLog.trace(requestId),
    ports.eventLog.deliveries({ requestId, limit: mostDeliveries }),
    ports.jobs.ofRequest(requestId),
    authoredRules(ports, ports.smsCountries),
  ])
  return trace && { trace, deliveries, jobs, explanation: explain(trace, deliveries, jobs, rules) }
}

/** As `explain --json`. */
export function explainedRow({
  trace,
  deliveries,
  jobs,
}: Omit<NonNullable<Awaited<ReturnType<typeof explained>>>, 'explanation'>) {
  return { ...traceRow(trace, deliveries), jobs: jobs.map((job) => rowOf(jobListing, job)) }
}

function keysOf<Key extends string>(record: Readonly<Record<Key, unknown>>): readonly Key[] {
  return Object.keys(record) as Key[]
}

type LogFilterPorts = Pick<ReadPorts, 'contacts' | 'secrets' | 'now' | 'isCountry'>

/** @param dashes before the names of fields in errors @throws InvalidInput */
export function deliveryFilter(
  ports: LogFilterPorts,
  { request: requestId, status, template, lang, error: errorClass, ...log }: InputOf<typeof deliveryFields>,
  dashes?: string,
): DeliveryFilter {
  const statuses = status.length > 0 ? statusesIn(status) : undefined
  return { ...logFilter(ports, log, dashes), requestId, statuses, template, lang, errorClass }
}

/** The same. */
export function callFilter(
  ports: LogFilterPorts,
  { call, result, ...log }: InputOf<typeof callFields>,
  dashes?: string,
): CallFilter {
  return { ...logFilter(ports, log, dashes), call, result }
}

function logFilter(
  { contacts, secrets, now, isCountry }: LogFilterPorts,
  { to, country, since, until, ...equal }: InputOf<typeof logFields>,
  dashes = '',
): LogFilter {
  const recipient = contacts.phone(to) ?? contacts.email(to)
  if (to !== undefined && !recipient) throw new InvalidInput(`${dashes}to ${contacts.faultOf(to)}`)
  if (country !== undefined && !isCountry(country))
    throw new InvalidInput(`${dashes}country must be an ISO 3166-1 country code of two letters, such as GB.`)
  const at = now()
  return {
    ...equal,
    country,
    recipientHashes: recipient && secrets.subjects(recipient.channel, recipient.to),
    since: since === undefined ? undefined : instantIn(since, at, `${dashes}since`),
    until: until === undefined ? undefined : instantIn(until, at, `${dashes}until`),
  }
}

/** One search reads a limited part of the log, so a page can have fewer rows and still a next one. */
function pageOf<Row>({ rows, next }: Found<Row>, rowOf: (row: Row) => object) {
  return { rows: rows.map(rowOf), next: next && positionText(next) }
}

function nextIn(text: string): LogPosition {
  const position = positionIn(text)
  if (!position) throw new InvalidInput('next must be the `next` of a page.')
  return position
}
