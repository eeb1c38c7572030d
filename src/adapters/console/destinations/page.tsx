/** @jsxImportSource preact */
import { useContext } from 'preact/hooks'
import {
  type AuthoredRule,
  countryName,
  countryOptions,
  countryWords,
  type DestinationAction,
  kindInWords,
  ruleListing,
} from '../../../domain/delivery/destination.ts'
import { cellsOf } from '../../../domain/ground/listing.ts'
import {
  type CheckedDestination,
  decisionWords,
  destinationRemove,
  destinationSet,
  ruleName,
  ruleWords,
} from '../../../domain/operator/destinations.ts'
import { type checkPrice, priceListing } from '../../../domain/operator/money.ts'
import { Badge, Empty, Facts, Field, LinkButton, Select, type Tone } from '../../pages/components.tsx'
import { ActionButton, ActionForm } from '../action-form.tsx'
import {
  actions,
  Card,
  columnsOf,
  consolePage,
  Form,
  FormContext,
  Problem,
  SetBy,
  Table,
} from '../components.tsx'
import type { PageContext } from '../page-context.ts'

export interface DestinationsModel {
  readonly rules: readonly AuthoredRule[]
  /** Slugs. */
  readonly brands: readonly string[]
  /** Names of the server's providers. */
  readonly providers: readonly string[]
  readonly hasTemplateRoute: boolean
  /** Every country. */
  readonly countryCodes: readonly string[]
  readonly check: {
    /** As entered. */
    readonly number: string
    readonly brand: string
    readonly result:
      | (CheckedDestination & {
          readonly formatted: string
          readonly price: ReturnType<typeof checkPrice>
        })
      | null
    readonly problem: string | null
  }
}

const tones: Readonly<Record<DestinationAction, Tone>> = { allow: 'good', monitor: 'warn', block: 'bad' }

export function destinationsPage(pageContext: PageContext, model: DestinationsModel): string {
  return consolePage(
    pageContext,
    {
      title: 'Destinations',
      section: 'destinations',
      actions: <LinkButton href="/admin/routes">Routes by evidence</LinkButton>,
    },
    <div class="columns wide-first loose">
      <div class="stack">
        <Rules model={model} />
      </div>
      <div class="stack">
        <Check model={model} />
        <RuleForm model={model} />
      </div>
    </div>,
  )
}

function Rules({ model: { rules } }: { model: DestinationsModel }) {
  if (rules.length === 0) {
    return (
      <Card>
        <Empty title="SMS go to every country">
          Premium-rate, shared-cost, pager and satellite numbers are blocked. Set `SMS_COUNTRIES` to the
          countries that you serve, or set rules on this page. Once a rule exists, personal numbers, universal
          access numbers and numbers of no known plan are blocked too.
        </Empty>
      </Card>
    )
  }
  return (
    <Card
      title="Rules"
      hint="The longest prefix applies, then the country, then `*`. Of two equal rules, that of the brand applies."
    >
      <Table
        caption="Destination rules"
        columns={[...columnsOf(ruleListing, 'rule', 'brand', 'action'), 'Sent with', 'Set', actions]}
        rows={rules.map(ruleCells)}
        empty=""
      />
      {rules.some(({ action }) => action === 'monitor') && (
        <p class="hint">
          SMS of a rule with the action monitor are sent. Request traces and metrics have those that block
          would reject.
        </p>
      )}
    </Card>
  )
}

/** Of its row. */
export function ruleId(rule: string, brandSlug: string | null = null): string {
  return ['rule', rule, brandSlug].filter(Boolean).join('-')
}

function ruleCells(listed: AuthoredRule) {
  const { rule, brandSlug, action, providers, sender, route, source, set } = listed
  const how = [
    providers.join(', '),
    sender !== null && `sender ${sender}`,
    route !== null && `${route} route`,
  ].filter(Boolean)
  const hidden = { rule, brand: brandSlug ?? '' }
  return [
    <span class="two-lines" id={ruleId(rule, brandSlug)}>
      <code>{rule}</code>
      <small>{meaningOf(rule)}</small>
    </span>,
    brandSlug === null ? 'all' : <bdi class="breaks">{brandSlug}</bdi>,
    <Badge tone={tones[action]}>{action}</Badge>,
    how.length === 0 ? <span class="hint">{action === 'block' ? '–' : 'defaults'}</span> : how.join('; '),
    set === null ? <span class="hint">–</span> : <SetBy {...set} />,
    source === 'SMS_COUNTRIES' ? (
      <span class="hint">
        from <code>SMS_COUNTRIES</code>
      </span>
    ) : (
      <div class="actions">
        <ActionButton
          of={destinationSet}
          with={{ ...hidden, action, providers, sender: sender ?? '', route: route ?? '' }}
          foretellsAt="field-rule"
        >
          Edit<span class="sr-only"> {ruleName(listed)}</span>
        </ActionButton>
        <ActionButton
          of={destinationRemove}
          with={hidden}
          confirm={`Remove the rule ${ruleName(listed)}? Less specific rules apply to its numbers.`}
          kind="danger"
        >
          Remove<span class="sr-only"> {ruleName(listed)}</span>
        </ActionButton>
      </div>
    ),
  ]
}

function meaningOf(rule: string): string {
  if (rule === '*') return 'all other numbers'
  return rule.startsWith('+') ? 'number range' : countryName(rule)
}

function Check({ model: { check, brands } }: { model: DestinationsModel }) {
  const { number, brand, result, problem } = check
  return (
    <Card
      title="Check a number"
      hint="What the rules and the prefixes of the guard decide, and what an SMS costs. No message is sent, and otpost does not store the number."
    >
      <div id="answer" tabIndex={-1}>
        <Problem text={problem} />
        {result && (
          <>
            <Facts
              entries={{
                Number: <bdi>{result.formatted}</bdi>,
                Country: countryWords(result.country),
                Kind: kindInWords(result.kind),
                Rules: (
                  <span>
                    <Badge tone={tones[result.decision.action]}>{result.decision.action}</Badge>{' '}
                    {decisionWords(result.decision)}
                  </span>
                ),
                'Rule that applies':
                  result.decision.rule &&
                  `${ruleName(result.decision.rule)}: ${ruleWords(result.decision.rule)}`,
                'Ways that it shuts off': result.leftOut,
                Guard: result.guard ?? 'No prefix of this number is blocked or allowed.',
              }}
            />
            <Table
              caption="Price of one segment, message or call"
              figures
              columns={columnsOf(priceListing, 'provider', 'prefix', 'price')}
              rows={result.price.prices.map((row) => cellsOf(priceListing, row))}
              empty=""
            />
            <p class="hint">Prices of one segment, message or call in {result.price.currency}.</p>
          </>
        )}
      </div>
      <Form action="/admin/destinations/check" anchor="answer" submit="Check" kind="plain">
        <Field
          label="Phone number"
          name="number"
          required
          isCode
          value={number}
          placeholder="+44 7400 123456"
        />
        {brands.length > 0 && <BrandSelect id="check-brand" value={brand} brands={brands} />}
      </Form>
    </Card>
  )
}

function BrandSelect({ id, value, brands }: { id: string; value: string; brands: readonly string[] }) {
  const options = { '': 'All brands', ...Object.fromEntries(brands.map((slug) => [slug, slug])) }
  return <Select label="Brand" id={id} name="brand" value={value} options={options} />
}

function RuleForm({ model }: { model: DestinationsModel }) {
  const { rejected } = useContext(FormContext)
  const { brands, providers, hasTemplateRoute, countryCodes } = model
  const named = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, name]))
  return (
    <Card title="Set a rule" hint="Replaces the whole rule of the same country, prefix and brand.">
      <ActionForm
        of={destinationSet}
        options={{
          brand: named(brands),
          providers: named([
            ...new Set([...providers, ...[rejected?.values.providers ?? []].flat().map(String)]),
          ]),
          ...(!hasTemplateRoute && { route: {} }),
        }}
        known={{ rule: [['*', 'All other numbers'], ...Object.entries(countryOptions(countryCodes))] }}
        submit="Save rule"
      />
    </Card>
  )
}
