/** @jsxImportSource preact */

import { type ComponentChildren, type ComponentProps, createContext } from 'preact'
import { useContext } from 'preact/hooks'
import { type AuditFilters, type AuditRecord, actorWords } from '../../domain/ground/audit.ts'
import { capitalized, counted } from '../../domain/ground/format.ts'
import type { Listing } from '../../domain/ground/listing.ts'
import { hasRole, type Role } from '../../domain/ground/role.ts'
import {
  Brandmark,
  Button,
  classes,
  document,
  ExactTime,
  Icon,
  type IconName,
  LinkButton,
  rich,
  singlePage,
  UtcNote,
  withTimes,
  ZoneNote,
} from '../pages/components.tsx'
import { consoleFiles } from './assets.ts'
import { timeText } from './deliveries/query.ts'
import { accessTo } from './form-access.ts'
import type { PageContext, Rejected } from './page-context.ts'

type Section =
  | 'overview'
  | 'requests'
  | 'brands'
  | 'apps'
  | 'deliveries'
  | 'queue'
  | 'destinations'
  | 'guard'
  | 'health'
  | 'money'
  | 'audit'
  | 'operators'
  | 'settings'

const sections: readonly { section: Section; title: string; href: string; icon: IconName }[] = [
  { section: 'overview', title: 'Overview', href: '/admin', icon: 'pulse' },
  { section: 'deliveries', title: 'Deliveries', href: '/admin/deliveries', icon: 'paper-plane' },
  { section: 'queue', title: 'Queue', href: '/admin/queue', icon: 'clock' },
  { section: 'requests', title: 'Requests', href: '/admin/requests', icon: 'tray' },
  { section: 'brands', title: 'Brands', href: '/admin/brands', icon: 'tag' },
  { section: 'apps', title: 'Apps', href: '/admin/apps', icon: 'key' },
  { section: 'destinations', title: 'Destinations', href: '/admin/destinations', icon: 'pin' },
  { section: 'guard', title: 'Guard', href: '/admin/guard', icon: 'shield' },
  { section: 'money', title: 'Money', href: '/admin/money', icon: 'coin' },
  { section: 'health', title: 'Health', href: '/admin/health', icon: 'heart' },
  { section: 'audit', title: 'Audit', href: '/admin/audit', icon: 'list' },
  { section: 'operators', title: 'Operators', href: '/admin/operators', icon: 'people' },
  { section: 'settings', title: 'Settings', href: '/admin/settings', icon: 'sliders' },
]

/** The title of the section of a path, such as `money`. */
export function sectionOf(path: string): string {
  return (
    sections.find(({ section }) => section === (path || 'overview'))?.title ??
    capitalized(path.replace('-', ' '))
  )
}

interface ConsolePageOptions {
  readonly title: string
  readonly section: Section | null
  readonly parent?: { readonly title: string; readonly href: string }
  /** Of the search field. */
  readonly query?: string
  readonly actions?: ComponentChildren
  readonly scripts?: readonly string[]
  readonly styles?: readonly string[]
}

export function consolePage(
  pageContext: PageContext,
  { title, section, parent, query = '', actions, scripts = [], styles = [] }: ConsolePageOptions,
  content: ComponentChildren,
): string {
  const options = {
    title,
    now: pageContext.now,
    files: consoleFiles,
    scripts: ['console.js', ...scripts],
    styles: [...styles, 'console.css'],
  }
  const { version, csrfToken, person, pendingRequests, hasOutbox, reviewNumbers, fault, flash, rejected } =
    pageContext
  const pending = (
    // Also for 0: console.js updates it.
    <span class="pending" data-live="pending" hidden={pendingRequests === 0}>
      {pendingRequests}
      <span class="sr-only"> pending</span>
    </span>
  )
  return document(
    options,
    <FormContext.Provider value={{ csrfToken, role: person.role, rejected }}>
      <div class="console">
        <a class="skip" href="#content">
          Skip to content
        </a>
        <header class="side">
          <a class="home" href="/admin">
            <Brandmark>Console</Brandmark>
          </a>
          {person.isSetUp && (
            <search class="find">
              <Form action="/admin/search">
                <label class="sr-only" for="find">
                  Search: request ID, recipient, app, brand, key, operator, prefix, country, error code or
                  reference
                </label>
                <input
                  id="find"
                  name="q"
                  type="search"
                  required
                  maxLength={300}
                  spellcheck={false}
                  autocapitalize="none"
                  placeholder="Search ( / )"
                  aria-keyshortcuts="/ Control+K"
                  value={query}
                />
                <Button>
                  <Icon name="search" />
                  <span class="sr-only">Search</span>
                </Button>
              </Form>
            </search>
          )}
          <button type="button" class="button menu-button" popovertarget="menu">
            Menu
            {pending}
          </button>
          <div class="menu" id="menu" popover="auto">
            {person.isSetUp && (
              <nav class="sections" aria-label="Console">
                <ul>
                  {sections.map((entry) => (
                    <li key={entry.section}>
                      <a href={entry.href} aria-current={entry.section === section ? 'page' : undefined}>
                        <Icon name={entry.icon} />
                        <span>{entry.title}</span>
                        {entry.section === 'requests' && pending}
                      </a>
                    </li>
                  ))}
                  {hasOutbox && (
                    <li class="apart">
                      <a href="/outbox">
                        <Icon name="inbox" />
                        <span>Outbox</span>
                      </a>
                    </li>
                  )}
                </ul>
              </nav>
            )}
            <div class="session">
              <p class="person">
                <a href="/admin/account" title={person.email ?? undefined}>
                  {person.email ?? 'Server administrator'}
                </a>
                <small>{person.role}</small>
              </p>
              <Form action="/admin/logout">
                <button type="submit" class="sign-out">
                  <Icon name="exit" />
                  <span>Sign out</span>
                </button>
              </Form>
              <p class="version">{version}</p>
            </div>
          </div>
        </header>
        <main id="content" tabIndex={-1}>
          {/* The overview lists them with its problems. */}
          {reviewNumbers > 0 && section !== 'overview' && (
            <Notice tone="warn">
              A fixed code verifies for {counted(reviewNumbers, 'review number')}.{' '}
              <a href="/admin/review-numbers">Review numbers</a>
            </Notice>
          )}
          {fault && section !== 'overview' && !rejected && (
            <Notice tone="bad">
              <strong>{fault.text}</strong> Changes are not saved. {fault.remedy}
            </Notice>
          )}
          {flash && <Notice tone={flash.tone}>{withTimes(flash.text)}</Notice>}
          {rejected && rejected.problem !== null && (
            <div tabIndex={-1} data-focus>
              <Problems list={rejected.problem.split('\n')} />
            </div>
          )}
          <header class="title">
            <div>
              {parent && (
                <p class="parent">
                  <a href={parent.href}>{parent.title}</a> <span aria-hidden="true">/</span>
                </p>
              )}
              <h1>{title}</h1>
              <ZoneNote />
            </div>
            {actions && <div class="actions">{actions}</div>}
          </header>
          {person.role !== 'owner' && (
            <p class="notice locked-note">
              <Icon name="shield" />
              {person.role === 'viewer'
                ? 'You are signed in as a viewer. You can read, not change.'
                : 'You are signed in as an operator. Only owners change accounts.'}
            </p>
          )}
          {content}
        </main>
      </div>
    </FormContext.Provider>,
  )
}

export function signedOutPage(
  title: string,
  content: ComponentChildren,
  scripts: readonly string[] = [],
): string {
  return singlePage(
    {
      title,
      files: consoleFiles,
      place: 'Console',
      scripts: ['console.js', ...scripts],
      styles: ['console.css'],
    },
    content,
  )
}

export function Problem({ text }: { text: string | null }) {
  return text === null ? null : <Notice tone="bad">{rich(text)}</Notice>
}

/** Nothing for an empty list. */
export function Problems({ list }: { list: readonly string[] }) {
  if (list.length === 0) return null
  return (
    <Notice tone="bad">
      <ul class="problems">
        {list.map((problem) => (
          <li key={problem}>{rich(problem)}</li>
        ))}
      </ul>
    </Notice>
  )
}

export function Notice({ tone, children }: { tone: 'good' | 'warn' | 'bad'; children: ComponentChildren }) {
  return (
    <div class={`notice ${tone}`} role={tone === 'bad' ? 'alert' : 'status'}>
      <Icon name={tone === 'good' ? 'check' : 'alert'} />
      <div>{children}</div>
    </div>
  )
}

interface CardProps {
  readonly id?: string
  readonly title?: ComponentChildren
  /** Below the title. A string may have code between backticks. */
  readonly hint?: ComponentChildren | undefined
  readonly actions?: ComponentChildren
  readonly class?: string
  readonly children?: ComponentChildren
}

export function Card({ id, title, hint, actions, class: extra, children }: CardProps) {
  return (
    <section class={classes('card', extra)} id={id}>
      {(title || hint || actions) && (
        <header>
          <div>
            {title && <h2>{title}</h2>}
            {hint && <p class="hint">{rich(hint)}</p>}
          </div>
          {actions && <div class="actions">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  )
}

interface Column {
  readonly title: string
  readonly align?: 'end'
  /** Its cells are row headers. Default: the first column. */
  readonly isHeader?: boolean
  readonly isQuiet?: boolean
}

interface TableProps {
  readonly caption: string
  readonly columns: readonly (string | Column)[]
  readonly rows: readonly (readonly ComponentChildren[])[]
  readonly empty: ComponentChildren
  /** Of each row, unique: an update of a live page keeps the row. */
  readonly keys?: readonly string[]
  /** Mostly numbers: side by side on a phone. With up to three columns it stays a table. */
  readonly figures?: boolean
}

export const end = (title: string): Column => ({ title, align: 'end' })

/** Of the last column, with the buttons of each row. */
export const actions: Column = { title: 'Actions', align: 'end', isQuiet: true }

/** The titles of these columns, or of all. */
export function columnsOf<Name extends string>(
  listing: Readonly<Record<Name, Pick<Listing<never>[string], 'title' | 'isNumber'>>>,
  ...names: readonly Name[]
): readonly Column[] {
  const all = names.length > 0 ? names : (Object.keys(listing) as Name[])
  return all.map((name) => {
    const { title = name, isNumber } = listing[name]
    return isNumber ? end(title) : { title }
  })
}

/** On a phone each row becomes a list. A column title may end with ` (UTC)`. */
export function Table({ caption, columns: wanted, rows, keys = [], empty, figures = false }: TableProps) {
  const columns = wanted.map((column): Column => (typeof column === 'string' ? { title: column } : column))
  if (rows.length === 0) return typeof empty === 'string' ? <p class="none">{empty}</p> : empty
  const header = Math.max(
    0,
    columns.findIndex(({ isHeader }) => isHeader),
  )
  return (
    <div class={classes(!(figures && columns.length <= 3) && 'table', figures && 'figures')}>
      <table>
        <caption class="sr-only">{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ title, align, isQuiet }) => (
              <th key={title} scope="col" class={align}>
                {isQuiet ? <span class="sr-only">{title}</span> : <ColumnTitle title={title} />}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells, row) => (
            <tr key={row} data-key={keys[row]}>
              {columns.map(({ title, align, isQuiet }, column) => {
                const label = isQuiet || column === header ? undefined : title
                return column === header ? (
                  <th key={title} scope="row" class={align}>
                    {cells[column]}
                  </th>
                ) : (
                  <td key={title} class={align} data-label={label}>
                    {label === undefined ? cells[column] : <div>{cells[column]}</div>}
                  </td>
                )
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function ColumnTitle({ title }: Pick<Column, 'title'>) {
  const [, name = title, note] = /^(.*)( \(UTC\))$/.exec(title) ?? []
  return (
    <>
      {name}
      {note && <UtcNote>{note}</UtcNote>}
    </>
  )
}

export const FormContext = createContext<{ csrfToken: string; role: Role; rejected?: Rejected | undefined }>({
  csrfToken: '',
  role: 'viewer',
})

export interface FormProps {
  readonly action: string
  /** The id of the element that the page after it scrolls to and focuses. */
  readonly anchor?: string | undefined
  readonly confirm?: string | undefined
  readonly hidden?: Readonly<Record<string, string>>
  /** More hidden fields, whose names may repeat. */
  readonly fields?: readonly (readonly [name: string, value: string])[]
  readonly class?: string
  readonly id?: string
  /** Where preview.js gets previews of its fields. */
  readonly previewAt?: string
  readonly submit?: ComponentChildren
  /** After the button that submits it, which Enter presses. */
  readonly buttons?: ComponentChildren
  readonly kind?: 'primary' | 'plain' | 'danger'
  readonly children?: ComponentChildren
}

export function Form({
  action,
  anchor,
  confirm,
  hidden = {},
  fields: more = [],
  class: extra,
  id,
  previewAt,
  submit,
  buttons,
  kind = 'primary',
  children,
}: FormProps) {
  const { csrfToken, role } = useContext(FormContext)
  const fields = [...Object.entries({ csrf: csrfToken, ...hidden }), ...more]
  const content = (
    <>
      {children}
      {submit && (
        <p class="buttons">
          <Button kind={kind}>{submit}</Button>
          {buttons}
        </p>
      )}
    </>
  )
  return (
    <form
      method="post"
      action={anchor === undefined ? action : `${action}#${anchor}`}
      class={classes('form', extra)}
      id={id}
      data-confirm={confirm}
      data-preview-at={previewAt}
      autocomplete="off"
    >
      {fields.map(([name, value], index) => (
        <input key={index} type="hidden" name={name} value={value} />
      ))}
      {hasRole(role, accessTo(action).role) ? (
        content
      ) : (
        <fieldset class="locked" disabled>
          {content}
        </fieldset>
      )}
    </form>
  )
}

/** A link to a page that has only a form of operators. */
export function FormLink(props: ComponentProps<typeof LinkButton>) {
  return hasRole(useContext(FormContext).role, 'operator') ? <LinkButton {...props} /> : null
}

/** console.js shows it. Pages with it have parts with `data-live`, and `data-now`. */
export function LiveBar() {
  return (
    <div class="live-bar" data-live-bar hidden>
      <p class="pulse hint" />
      <button type="button" class="button plain small">
        <span>Pause</span>
        <span class="sr-only"> updates</span>
      </button>
    </div>
  )
}

interface ShownOnceProps {
  readonly title: ComponentChildren
  /** Such as `key`. */
  readonly thing: string
  readonly text: string
  readonly isLong?: boolean
  /** Where to go when it is stored. */
  readonly done?: { readonly title: string; readonly href: string }
  /** What it is for, after that it is shown only once. */
  readonly children: ComponentChildren
}

/** A secret. The only page with it. */
export function ShownOnce({ title, thing, text, isLong = false, done, children }: ShownOnceProps) {
  return (
    <section class="key" aria-labelledby="key-title">
      <h2 id="key-title">{title}</h2>
      <p class={classes('key-value', isLong && 'long')}>
        <code>{text}</code>
      </p>
      <p class="key-warning">
        <strong>This {thing} is shown only once.</strong> {children}
      </p>
      <p class="buttons">
        <button type="button" class="button primary" data-copy={text}>
          Copy {thing}
        </button>
        {done && <LinkButton href={done.href}>Done: go to {done.title}</LinkButton>}
      </p>
    </section>
  )
}

interface PasskeyFormProps {
  /** To add one, or to use one. */
  readonly kind: 'create' | 'get'
  /** Of the browser's call, in JSON. */
  readonly options: string
  readonly action: string
  /** Has the response. */
  readonly name?: string
  readonly fields?: readonly (readonly [name: string, value: string])[]
  readonly submit: string
  readonly children?: ComponentChildren
}

/** passkey.js asks the browser. Without scripts there is no button. */
export function PasskeyForm({
  kind,
  options,
  action,
  name = 'passkey',
  fields = [],
  submit,
  children,
}: PasskeyFormProps) {
  const all = [['csrf', useContext(FormContext).csrfToken] as const, ...fields]
  return (
    <form
      method="post"
      action={action}
      class="form"
      data-passkey={kind}
      data-options={options}
      autocomplete="off"
    >
      {all.map(([name, value], index) => (
        <input key={index} type="hidden" name={name} value={value} />
      ))}
      <input type="hidden" name={name} data-response />
      {children}
      <p class="buttons">
        <button type="submit" class="button primary" hidden>
          {submit}
        </button>
      </p>
      <p class="hint" role="status" />
      <noscript>
        <p class="hint">Passkeys require JavaScript.</p>
      </noscript>
    </form>
  )
}

export function Drawing(props: { class?: string; viewBox: string; children: ComponentChildren }) {
  return <svg {...props} preserveAspectRatio="none" aria-hidden="true" focusable="false" />
}

interface PagerProps {
  readonly first: string | null
  readonly newer?: string | null
  readonly next: string | null
  readonly nextTitle?: string
}

export function Pager({ first, newer = null, next, nextTitle = 'Older' }: PagerProps) {
  if (first === null && newer === null && next === null) return null
  return (
    <nav class="pager" aria-label="Pages">
      {first && <LinkButton href={first}>Latest</LinkButton>}
      {newer && <LinkButton href={newer}>Newer</LinkButton>}
      {next && <LinkButton href={next}>{nextTitle}</LinkButton>}
    </nav>
  )
}

/** A masked recipient; phone numbers get a plus sign. */
export function withPlus(masked: string): string {
  return /^\d+\*+\d+$/.test(masked) ? `+${masked}` : masked
}

/** When an entry was set, and who set it, with a link to the audit log. */
export function SetBy({ id, at, actor }: Pick<AuditRecord, 'id' | 'at' | 'actor'>) {
  return (
    <span class="two-lines">
      <a href={`/admin/audit?before=${id + 1}`}>
        <ExactTime at={at} toMinute />
      </a>
      <small>
        <bdi class="breaks">{actorWords(actor)}</bdi>
      </small>
    </span>
  )
}

/** @param place `before` or `after` an entry */
export function auditUrl(
  filters: AuditFilters,
  place: Readonly<Record<string, number>> = {},
  file: '' | '.csv' = '',
): string {
  const { group, action = group, actorName, target, withoutSignIns, since, until } = filters
  const query = new URLSearchParams()
  if (action !== undefined) query.set('group', action)
  if (actorName !== undefined) query.set('by', actorName)
  if (target !== undefined) query.set('target', target)
  if (withoutSignIns) query.set('hide', 'sign-ins')
  if (since !== undefined) query.set('from', `${timeText(since)}Z`)
  if (until !== undefined) query.set('until', `${timeText(until)}Z`)
  for (const [name, id] of Object.entries(place)) query.set(name, String(id))
  return `/admin/audit${file}${query.size === 0 ? '' : `?${query}`}`
}
