/** @jsxImportSource preact */
import {
  type AuthoredRule,
  countryName,
  countryWords,
  type DestinationAction,
  kindInWords,
} from '../../../domain/delivery/destination.ts'
import { count, percent } from '../../../domain/ground/format.ts'
import { unknownCountry } from '../../../domain/guard/bucket.ts'
import type { CountryCodes } from '../../../domain/guard/counts.ts'
import {
  type CheckedDestination,
  decisionWords,
  ruleName,
  ruleWords,
} from '../../../domain/operator/destinations.ts'
import {
  Badge,
  Button,
  Choice,
  Empty,
  Facts,
  Field,
  FieldGroup,
  Select,
  type Tone,
} from '../../pages/components.tsx'
import { Card, consolePage, Form, Notice, Problem, SetBy, Table } from '../components.tsx'
import type { PageContext } from '../page-context.ts'

export interface DestinationForm {
  readonly rule: string
  readonly action: string
  /** A slug. Empty: all brands. */
  readonly brand: string
  readonly providers: readonly string[]
  readonly sender: string
  /** Empty: as OTP_SMS_MODE says. */
  readonly route: string
  readonly isGroup: boolean
}

export interface DestinationsModel {
  readonly rules: readonly AuthoredRule[]
  readonly countries: readonly CountryCodes[]
  /** Slugs. */
  readonly brands: readonly string[]
  /** Names of the server's providers. */
  readonly providers: readonly string[]
  readonly hasTemplateRoute: boolean
  readonly form: DestinationForm
  readonly problems: readonly string[]
  readonly check: {
    /** As entered. */
    readonly number: string
    readonly brand: string
    readonly result:
      | (CheckedDestination & {
          readonly formatted: string
          /** What its entry for the number does. */
          readonly guard: string | null
        })
      | null
    readonly problem: string | null
  }
}

const tones: Readonly<Record<DestinationAction, Tone>> = { allow: 'good', monitor: 'warn', block: 'bad' }

export function destinationsPage(pageContext: PageContext, model: DestinationsModel): string {
  return consolePage(
    pageContext,
    { title: 'Destinations', section: 'destinations' },
    <div class="columns wide-first loose">
      <div class="stack">
        <Rules model={model} />
        <Card title="Codes by SMS in the last 24 hours" hint="By country of the phone number.">
          <Table
            caption="Codes by country"
            figures
            columns={[
              'Country',
              { title: 'Sent', align: 'end' },
              { title: 'Verified', align: 'end' },
              { title: 'Conversion', align: 'end' },
            ]}
            rows={model.countries.map(({ country, sent, verified }) => [
              country === unknownCountry ? 'No country' : countryWords(country),
              count(sent),
              count(verified),
              sent === 0 ? '–' : percent(Math.min(1, verified / sent)),
            ])}
            empty="No codes were sent by SMS."
          />
        </Card>
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
          countries that you serve, or set rules on this page. Once a rule exists, numbers of no known plan
          are blocked too.
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
        columns={[
          'Rule',
          'Brand',
          'Action',
          'Sent with',
          'Set',
          { title: 'Actions', align: 'end', isQuiet: true },
        ]}
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

function ruleCells(listed: AuthoredRule, index: number) {
  const { rule, brandSlug, action, providers, sender, route, source, set } = listed
  const how = [
    providers.join(', '),
    sender !== null && `sender ${sender}`,
    route !== null && `${route} route`,
  ].filter(Boolean)
  const hidden = { rule, brand: brandSlug ?? '' }
  return [
    <span class="two-lines" id={`rule-${index}`}>
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
        <Form
          action="/admin/destinations/edit"
          anchor="field-rule"
          hidden={{ ...hidden, action, sender: sender ?? '', route: route ?? '' }}
        >
          {providers.map((name) => (
            <input key={name} type="hidden" name="providers" value={name} />
          ))}
          <Button small>
            Edit<span class="sr-only"> {ruleName(listed)}</span>
          </Button>
        </Form>
        <Form
          action="/admin/destinations/remove"
          confirm={`Remove the rule ${ruleName(listed)}? Less specific rules apply to its numbers.`}
          hidden={hidden}
        >
          <Button kind="danger" small>
            Remove<span class="sr-only"> {ruleName(listed)}</span>
          </Button>
        </Form>
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
      hint="What the rules and the prefixes of the guard decide. No message is sent, and otpost does not store the number."
    >
      <div id="answer" tabIndex={-1}>
        <Problem text={problem} />
        {result && (
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
              Guard: result.guard ?? 'No prefix of this number is blocked or allowed.',
            }}
          />
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
  const { form, problems, brands, providers, hasTemplateRoute } = model
  return (
    <Card title="Set a rule" hint="Replaces the whole rule of the same country, prefix and brand.">
      {problems.length > 0 && (
        <div tabIndex={-1} data-focus>
          <Notice tone="bad">
            {problems.map((problem) => (
              <p key={problem}>{problem}</p>
            ))}
          </Notice>
        </div>
      )}
      <Form action="/admin/destinations" submit="Save rule">
        <Field
          label="Rule"
          name="rule"
          required
          isCode
          value={form.rule}
          hint="A country such as `GB`, a prefix such as `+4479`, or `*` for all other numbers."
        />
        <Choice
          label="With its territories"
          name="isGroup"
          checked={form.isGroup}
          hint="For GB: also Guernsey, Jersey and the Isle of Man."
        />
        <Select
          label="Action"
          name="action"
          value={form.action}
          options={{
            allow: 'allow: send',
            monitor: 'monitor: send, and record what block would reject',
            block: 'block: reject',
          }}
        />
        {brands.length > 0 && <BrandSelect id="rule-brand" value={form.brand} brands={brands} />}
        <FieldGroup legend="Only these providers">
          {[...new Set([...providers, ...form.providers])].map((name) => (
            <Choice
              key={name}
              id={`provider-${name}`}
              label={name}
              name="providers"
              value={name}
              checked={form.providers.includes(name)}
            />
          ))}
        </FieldGroup>
        <Field
          label="Sender"
          name="sender"
          value={form.sender}
          hint="A number with `+`, a short code or a name of up to 11 characters. Empty: the provider’s default."
        />
        {hasTemplateRoute && (
          <Select
            label="Route"
            name="route"
            value={form.route}
            options={{
              '': 'default',
              plain: 'plain: the direct route',
              template: 'template: the registered-template (DLT) route',
            }}
          />
        )}
      </Form>
    </Card>
  )
}
