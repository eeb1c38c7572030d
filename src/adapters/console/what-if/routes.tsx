/** @jsxImportSource preact */

import { cellsOf } from '../../../domain/ground/listing.ts'
import { dayMs, parseDuration } from '../../../domain/ground/time.ts'
import type { GuardMode } from '../../../domain/guard/guard.ts'
import { destinationSet } from '../../../domain/operator/destinations.ts'
import { guardModeSet } from '../../../domain/operator/guard.ts'
import { mostRead } from '../../../domain/operator/routes.ts'
import {
  mobilePrices,
  type SumTable,
  type WhatIf,
  whatIf,
  whatIfTables,
  whatIfWords,
} from '../../../domain/operator/whatif.ts'
import { Button, Field, rich, Select } from '../../pages/components.tsx'
import { ActionButton } from '../action-form.tsx'
import { html } from '../answers.ts'
import { actions, Card, columnsOf, consolePage, Problem, Table } from '../components.tsx'
import { logUrl } from '../deliveries/query.ts'
import { ChartFigure } from '../overview/chart.tsx'
import type { PageHandler } from '../page-handler.ts'

const mostRows = 30
const spans = { '1d': '24 hours', '7d': '7 days', '30d': '30 days' }
const modes = { '': 'as now', deny: 'deny', record: 'record', off: 'off' } satisfies Record<
  GuardMode | '',
  string
>
const isMode = (name: string): name is GuardMode => name !== '' && Object.hasOwn(modes, name)

export function whatIfRoutes({ get, ports, settings }: PageHandler): void {
  get('/admin/what-if', async ({ url: { searchParams: query } }, pageContext) => {
    const entered = (name: string) => query.get(name)?.trim() ?? ''
    const [guard, phoneHour] = [entered('guard'), entered('phoneHour')]
    const since = Object.hasOwn(spans, entered('since')) ? entered('since') : '7d'
    const countries = entered('countries')
      .toUpperCase()
      .split(/[\s,]+/)
      .filter(Boolean)
    const problem =
      (countries.every(settings.numbers.isCountry) ? '' : 'Countries must be codes such as IN,GB. ') +
      (/^(?:[1-9][0-9]{0,5})?$/.test(phoneHour) ? '' : 'Codes per phone and hour must be 1 to 999999.')
    const given = {
      guard: isMode(guard) ? guard : undefined,
      countries: countries.length > 0 ? countries : undefined,
      phoneHour: phoneHour === '' ? undefined : Number(phoneHour),
    }
    const prices = mobilePrices(await ports.priceList(), settings.numbers.exampleOf)
    const server = { ...settings, ...settings.limits, prices }
    const from = { since: pageContext.now - (parseDuration(since) ?? dayMs), most: mostRead }
    const found = problem === '' && query.size > 0 ? await whatIf(ports, server, given, from) : undefined
    const page = consolePage(
      pageContext,
      {
        title: 'What if',
        section: 'guard',
        parent: { title: 'Guard', href: '/admin/guard' },
        scripts: ['charts.js'],
        styles: ['uplot.css'],
      },
      <>
        <Card title="Other settings" hint="Try them with the codes of the event log. Nothing is changed.">
          <Problem text={problem || null} />
          <form method="get" action="/admin/what-if" class="form" autocomplete="off">
            <Select label="Codes of the last" name="since" value={since} options={spans} />
            <Select label="Guard" name="guard" value={guard} options={modes} />
            <Field
              label="Countries"
              name="countries"
              value={entered('countries')}
              hint="`SMS_COUNTRIES`, such as `IN,GB`. Empty: as now."
            />
            <Field
              label="Codes per phone and hour"
              name="phoneHour"
              value={phoneHour}
              hint="`PHONE_LIMIT_PER_HOUR`. Empty: as now."
            />
            <p class="buttons">
              <Button>Try</Button>
            </p>
          </form>
        </Card>
        {found && <Result found={found} given={given} />}
      </>,
    )
    return html(page, problem === '' ? 200 : 400)
  })
}

interface ResultProps {
  readonly found: WhatIf
  readonly given: Parameters<typeof whatIf>[2]
}

function Result({ found, given: { guard, countries, phoneHour } }: ResultProps) {
  const [answer, ...settings] = whatIfWords(found)
  const { byDay, byCountry, byApp } = whatIfTables(found)
  const line = (label: string, kind: 'area' | 'gold', of: 'requests' | 'denied') => {
    return { label, kind, values: byDay.rows.map((row) => row[of]), rows: logUrl('calls', {}) }
  }
  const changed = [
    countries && `SMS_COUNTRIES=${countries.join(',')}`,
    phoneHour && `PHONE_LIMIT_PER_HOUR=${phoneHour}`,
  ]
  const setting = changed.filter(Boolean).join(' ')
  return (
    <>
      <Card title="With these settings" hint={settings.join(' ')}>
        <p>{answer}</p>
        {setting && <p class="hint">{rich(`To apply them, set \`${setting}\` and restart the server.`)}</p>}
        {guard && (
          <ActionButton
            of={guardModeSet}
            with={{ mode: guard }}
            confirm={`Set the mode of the guard to ${guard}?`}
          >
            Set the guard to {guard}
          </ActionButton>
        )}
      </Card>
      <Card title="By day">
        <ChartFigure
          id="what-if"
          caption="Codes by day"
          data={{
            stepSeconds: dayMs / 1000,
            at: found.byDay.map(({ at }) => at / 1000),
            isOfUtcDays: true,
            isUnfinished: true,
            lines: [line('Codes', 'area', 'requests'), line('Denied', 'gold', 'denied')],
          }}
          columns={columnsOf(byDay.listing)}
          rows={byDay.rows.map((row) => cellsOf(byDay.listing, row))}
        />
      </Card>
      <Sums title="By country" table={byCountry} hasAction />
      <Sums title="By app" table={byApp} />
      <Card title="What the log does not say" class="notes">
        <ul>
          {found.unknown.map((words) => (
            <li key={words}>{words}</li>
          ))}
        </ul>
      </Card>
    </>
  )
}

interface SumsProps {
  readonly title: string
  readonly table: SumTable
  readonly hasAction?: boolean
}

function Sums({ title, table: { rows, listing }, hasAction = false }: SumsProps) {
  const block = (country: string | null) =>
    country !== null && (
      <ActionButton of={destinationSet} with={{ rule: country, action: 'block' }} foretellsAt="field-rule">
        Block the country…<span class="sr-only"> {country}</span>
      </ActionButton>
    )
  return (
    <Card title={title}>
      <Table
        caption={`Codes ${title.toLowerCase()}`}
        figures
        columns={[...columnsOf(listing), ...(hasAction ? [actions] : [])]}
        rows={rows
          .slice(0, mostRows)
          .map((row) => [
            ...cellsOf(listing, row),
            ...(hasAction ? [row.denied > 0 && block(row.name)] : []),
          ])}
        empty="None."
      />
    </Card>
  )
}
