/** @jsxImportSource preact */
import { type ComponentChildren, toChildArray } from 'preact'
import { renderToString } from 'preact-render-to-string'
import type { PageContext } from './models.ts'
import { ago, utc } from './words.ts'

// The building blocks of the console's pages. They work without script; console.js adds to them what `data-` attributes
// ask for. No style and no script stands in a page itself: its policy forbids both.

/** A part of the console that the navigation leads to. */
export type Section = 'overview' | 'requests' | 'brands' | 'apps' | 'deliveries' | 'audit' | 'settings'

const sections: readonly { section: Section; title: string; href: string; icon: IconName }[] = [
  { section: 'overview', title: 'Overview', href: '/admin', icon: 'pulse' },
  { section: 'deliveries', title: 'Deliveries', href: '/admin/deliveries', icon: 'paper-plane' },
  { section: 'requests', title: 'Requests', href: '/admin/requests', icon: 'tray' },
  { section: 'brands', title: 'Brands', href: '/admin/brands', icon: 'tag' },
  { section: 'apps', title: 'Apps', href: '/admin/apps', icon: 'key' },
  { section: 'audit', title: 'Audit', href: '/admin/audit', icon: 'list' },
  { section: 'settings', title: 'Settings', href: '/admin/settings', icon: 'sliders' },
]

const icons = {
  stamp: 'M4 6.5h16v11H4zM4.5 7l7.5 6 7.5-6',
  pulse: 'M3.5 12.5h4l2.5-7 4 13 2.5-6h4',
  'paper-plane': 'M20.5 4L3.5 10.5l6.5 3 3 6.5zM10 13.5L20.5 4',
  tray: 'M4 13.5l2.5-8h11l2.5 8v5H4zM4 13.5h5l1.5 2.5h3l1.5-2.5h5',
  tag: 'M4 4.5h7.5l8.5 8.5-7 7L4.5 11.5zM8.5 8.5v.01',
  key: 'M11.5 12.5l8-8M16 8l2.5 2.5M11 16a4 4 0 11-8 0 4 4 0 018 0z',
  list: 'M8.5 6.5h11M8.5 12h11M8.5 17.5h11M4.5 6.5v.01M4.5 12v.01M4.5 17.5v.01',
  sliders: 'M4 8h8M16 8h4M4 16h4M12 16h8M14 6v4M10 14v4',
  inbox: 'M4 5h16v11H11l-4 3.5V16H4z',
  exit: 'M10 4.5H5v15h5M14.5 8l4 4-4 4M18.5 12H9.5',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  alert: 'M12 4l8.5 15.5h-17zM12 10v4M12 16.5v.01',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  next: 'M9.5 5.5L16 12l-6.5 6.5',
} as const
export type IconName = keyof typeof icons

/** A sign beside words that say the same: it is hidden from screen readers. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={icons[name]} />
    </svg>
  )
}

const favicon =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24'%3E%3Crect width='24' height='24' rx='6' fill='%230f5f6b'/%3E%3Cpath d='M5 8l7 5 7-5M5 7h14v10H5z' fill='none' stroke='%23ffe08a' stroke-width='1.8' stroke-linejoin='round'/%3E%3C/svg%3E"

export interface DocumentOptions {
  /** Of the page, without the name of the program. */
  readonly title: string
  /** Paths of modules beside console.js, such as `/admin/charts.js`. */
  readonly scripts?: readonly string[]
  /** Paths of style sheets beside console.css. */
  readonly styles?: readonly string[]
}

/** A whole HTML document. */
export function document(
  { title, scripts = [], styles = [] }: DocumentOptions,
  body: ComponentChildren,
): string {
  const html = renderToString(
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="theme-color" media="(prefers-color-scheme: light)" content="#fbfaf8" />
        <meta name="theme-color" media="(prefers-color-scheme: dark)" content="#181c1f" />
        <meta name="robots" content="noindex" />
        <title>{`${title} · otpost`}</title>
        <link rel="icon" href={favicon} />
        {[...styles, '/admin/console.css'].map((path) => (
          <link key={path} rel="stylesheet" href={path} />
        ))}
        {['/admin/console.js', ...scripts].map((path) => (
          <script key={path} type="module" src={path} />
        ))}
      </head>
      <body>{body}</body>
    </html>,
  )
  return `<!doctype html>${html}`
}

/** The frame of a page for one who is not in: one sheet of paper, with the edge of a postage stamp. */
export function Gate({ children }: { children: ComponentChildren }) {
  return (
    <main class="gate">
      <Brandmark>Console</Brandmark>
      <div class="letter">
        <div class="postage">{children}</div>
      </div>
    </main>
  )
}

/** The name of the program beside its stamp. */
export function Brandmark({ children }: { children?: ComponentChildren }) {
  return (
    <span class="brandmark">
      <span class="logo">
        <Icon name="stamp" />
      </span>
      <span class="name">otpost</span>
      {children === undefined ? null : <span class="place">{children}</span>}
    </span>
  )
}

interface ConsolePageProps {
  readonly pageContext: PageContext
  /** Null: it is in none. */
  readonly section: Section | null
  readonly title: string
  /** Beside the title: where it leads back to, as on a page below another. */
  readonly parent?: { readonly title: string; readonly href: string }
  /** What can be done with the page as a whole: buttons, links. */
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
}

/** The frame of every page of a session: navigation, what has just happened, the title, the content. */
export function ConsolePage({ pageContext, section, title, parent, actions, children }: ConsolePageProps) {
  return (
    <div class="frame" data-now={pageContext.now}>
      <a class="skip" href="#content">
        Skip to content
      </a>
      <header class="side">
        <a class="home" href="/admin">
          <Brandmark>Console</Brandmark>
        </a>
        <nav class="sections" aria-label="Console">
          <ul>
            {sections.map((entry) => (
              <li key={entry.section}>
                <a href={entry.href} aria-current={entry.section === section ? 'page' : undefined}>
                  <Icon name={entry.icon} />
                  <span>{entry.title}</span>
                  {entry.section === 'requests' ? <StatKey waiting={pageContext.pendingRequests} /> : null}
                </a>
              </li>
            ))}
            {pageContext.hasOutbox ? (
              <li class="apart">
                <a href="/outbox">
                  <Icon name="inbox" />
                  <span>Outbox</span>
                </a>
              </li>
            ) : null}
          </ul>
        </nav>
        <div class="session">
          <Form pageContext={pageContext} action="/admin/logout">
            <button type="submit" class="sign-out">
              <Icon name="exit" />
              <span>Sign out</span>
            </button>
          </Form>
          <p class="version">{pageContext.version}</p>
        </div>
      </header>
      <main id="content" tabIndex={-1}>
        {pageContext.flash ? <Notice tone={pageContext.flash.tone}>{pageContext.flash.text}</Notice> : null}
        <header class="title">
          <div>
            {parent ? (
              <p class="parent">
                <a href={parent.href}>{parent.title}</a> <span aria-hidden="true">/</span>
              </p>
            ) : null}
            <h1>{title}</h1>
          </div>
          {actions === undefined ? null : <div class="actions">{actions}</div>}
        </header>
        {children}
      </main>
    </div>
  )
}

/** How many wait for the operator; 0 is not worth a word, but a place where a later number can stand. */
function StatKey({ waiting }: { waiting: number }) {
  return (
    <span class="tally" data-live="tally" hidden={waiting === 0}>
      {waiting}
      <span class="sr-only"> waiting</span>
    </span>
  )
}

/** Something that was done, or went wrong, said above everything else; screen readers say it at once. */
export function Notice({ tone, children }: { tone: 'good' | 'bad' | 'warn'; children: ComponentChildren }) {
  return (
    <div class={`notice ${tone}`} role={tone === 'bad' ? 'alert' : 'status'}>
      <Icon name={tone === 'good' ? 'check' : 'alert'} />
      <div>{children}</div>
    </div>
  )
}

interface CardProps {
  readonly title?: ComponentChildren
  /** A sentence below the title. */
  readonly hint?: ComponentChildren
  readonly actions?: ComponentChildren
  readonly class?: string
  /** So that a link can lead to it. */
  readonly id?: string
  readonly children?: ComponentChildren
}

/** A part of a page, on a sheet of its own. */
export function Card({ title, hint, actions, class: extra, id, children }: CardProps) {
  return (
    <section class={classes('card', extra)} id={id}>
      {title === undefined && hint === undefined && actions === undefined ? null : (
        <header>
          <div>
            {title === undefined ? null : <h2>{title}</h2>}
            {hint === undefined ? null : <p class="hint">{hint}</p>}
          </div>
          {actions === undefined ? null : <div class="actions">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  )
}

export interface Column {
  readonly title: string
  /** Numbers stand at the end, so that their digits are below each other. */
  readonly align?: 'start' | 'end'
  /** Its cells name their rows; without one that does, the first column does. */
  readonly isHeader?: boolean
  /** Its title is for screen readers alone, as above a column of buttons. */
  readonly isQuiet?: boolean
}

interface TableProps {
  /** What is in it; said by screen readers, not shown. */
  readonly caption: string
  readonly columns: readonly Column[]
  readonly rows: readonly (readonly ComponentChildren[])[]
  /** What stands there while there are no rows: words, or an `Empty`. */
  readonly empty: ComponentChildren
  /** It is mostly numbers: on a phone they stand beside each other, not one below the other. */
  readonly figures?: boolean
}

/** Rows below columns; on a phone each row becomes a small list of its own. */
export function Table({ caption, columns, rows, empty, figures = false }: TableProps) {
  if (rows.length === 0) return typeof empty === 'string' ? <p class="none">{empty}</p> : empty
  const named = columns.findIndex(({ isHeader }) => isHeader)
  const header = named === -1 ? 0 : named
  return (
    <div class={classes('table', figures ? 'figures' : undefined)}>
      <table>
        <caption class="sr-only">{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ title, align, isQuiet }) => (
              <th key={title} scope="col" class={align}>
                {isQuiet ? <span class="sr-only">{title}</span> : title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells, row) => (
            <tr key={row}>
              {columns.map(({ title, align, isQuiet }, column) => {
                const label = isQuiet || column === header ? undefined : title
                return column === header ? (
                  <th key={title} scope="row" class={align}>
                    {cells[column]}
                  </th>
                ) : (
                  <td key={title} class={align} data-label={label}>
                    {/* One thing, so that on a phone it stands as one beside its label. */}
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

interface FormProps {
  readonly pageContext: Pick<PageContext, 'csrfToken'>
  /** The path it is posted to. */
  readonly action: string
  /** A question that is asked before it is sent, such as `Revoke the key …7f3a? What uses it stops working at once.` */
  readonly confirm?: string
  /** `inline`: fields and buttons in one line; `plain`: no layout of its own. */
  readonly class?: string
  readonly id?: string
  readonly children: ComponentChildren
}

/** A form that is posted, with what proves that it came from a page of this session. */
export function Form({ pageContext, action, confirm, class: extra, id, children }: FormProps) {
  return (
    <form
      method="post"
      action={action}
      class={classes('form', extra)}
      id={id}
      data-confirm={confirm}
      autocomplete="off"
    >
      <input type="hidden" name="csrf" value={pageContext.csrfToken} />
      {children}
    </form>
  )
}

interface ControlProps {
  readonly label: ComponentChildren
  readonly name: string
  /** The id of the control, where the page has several of this name; without it `field-NAME`. */
  readonly id?: string
  readonly value?: string | undefined
  readonly hint?: ComponentChildren
  /** What is wrong with what was entered. */
  readonly error?: string | null | undefined
  readonly required?: boolean
  readonly disabled?: boolean
}

/** The parts that every control shares: its label above, its hint and error below, and what ties them to it. */
function control({ id, name, hint, error }: ControlProps) {
  const own = id ?? `field-${name}`
  const described = [hint === undefined ? '' : `${own}-hint`, error ? `${own}-error` : '']
    .filter(Boolean)
    .join(' ')
  return {
    id: own,
    attributes: {
      id: own,
      name,
      'aria-describedby': described || undefined,
      'aria-invalid': error ? ('true' as const) : undefined,
    },
    below: (
      <>
        {error ? (
          <p class="wrong" id={`${own}-error`}>
            {error}
          </p>
        ) : null}
        {hint === undefined ? null : (
          <p class="hint" id={`${own}-hint`}>
            {hint}
          </p>
        )}
      </>
    ),
  }
}

interface FieldProps extends ControlProps {
  readonly type?: 'text' | 'password' | 'email' | 'search' | 'url'
  readonly placeholder?: string
  readonly autocomplete?: string
  readonly maxLength?: number
  readonly pattern?: string
  readonly readOnly?: boolean
  /** In letters of one width, as ids and keys are best read. */
  readonly isCode?: boolean
}

/** A line of text. */
export function Field(props: FieldProps) {
  const { id, attributes, below } = control(props)
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      <input
        {...attributes}
        // One type stands for all that take a line of text: their attributes are typed one by one.
        type={(props.type ?? 'text') as 'text'}
        value={props.value}
        class={props.isCode ? 'code' : undefined}
        required={props.required}
        disabled={props.disabled}
        readOnly={props.readOnly}
        placeholder={props.placeholder}
        maxLength={props.maxLength}
        pattern={props.pattern}
        autocomplete={props.autocomplete ?? 'off'}
        autocapitalize={props.isCode ? 'none' : undefined}
        spellcheck={props.isCode ? false : undefined}
      />
      {below}
    </div>
  )
}

interface AreaProps extends ControlProps {
  readonly rows?: number
  readonly placeholder?: string
  readonly maxLength?: number
  readonly isCode?: boolean
}

/** Several lines of text. */
export function Area(props: AreaProps) {
  const { id, attributes, below } = control(props)
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      <textarea
        {...attributes}
        class={props.isCode ? 'code' : undefined}
        rows={props.rows ?? 3}
        required={props.required}
        disabled={props.disabled}
        placeholder={props.placeholder}
        maxLength={props.maxLength}
        spellcheck={props.isCode ? false : undefined}
        value={props.value ?? ''}
      />
      {below}
    </div>
  )
}

interface ChoiceProps extends ControlProps {
  /** Whether it is ticked; `value` is what is sent when it is, `1` without one. */
  readonly checked: boolean
}

/** A box that is ticked or not. */
export function Choice(props: ChoiceProps) {
  const { id, attributes, below } = control(props)
  return (
    <div class="choice">
      <input
        {...attributes}
        type="checkbox"
        value={props.value ?? '1'}
        checked={props.checked}
        disabled={props.disabled}
      />
      <div>
        <label for={id}>{props.label}</label>
        {below}
      </div>
    </div>
  )
}

/** Controls that belong together, with what they are about. */
export function FieldGroup({
  legend,
  hint,
  children,
}: {
  legend: string
  hint?: ComponentChildren
  children: ComponentChildren
}) {
  return (
    <fieldset class="group">
      <legend>{legend}</legend>
      {hint === undefined ? null : <p class="hint">{hint}</p>}
      {children}
    </fieldset>
  )
}

type Kind = 'primary' | 'plain' | 'danger'

interface ButtonProps {
  readonly kind?: Kind
  /** A smaller one, as in a row of a table. */
  readonly small?: boolean
  readonly name?: string
  readonly value?: string
  readonly disabled?: boolean
  readonly children: ComponentChildren
}

/** Sends the form it is in. */
export function Button({ kind = 'plain', small, name, value, disabled, children }: ButtonProps) {
  return (
    <button
      type="submit"
      class={classes('button', kind, small ? 'small' : undefined)}
      name={name}
      value={value}
      disabled={disabled}
    >
      {children}
    </button>
  )
}

interface LinkButtonProps {
  readonly href: string
  readonly kind?: Kind
  readonly small?: boolean
  readonly children: ComponentChildren
}

/** A link that looks like a button. */
export function LinkButton({ href, kind = 'plain', small, children }: LinkButtonProps) {
  return (
    <a class={classes('button', kind, small ? 'small' : undefined)} href={href}>
      {children}
    </a>
  )
}

export type Tone = 'good' | 'bad' | 'warn' | 'quiet'

/** A status in a word or two; its colour says nothing that the words don't. */
export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>
}

/** A time as it lies from now; pointed at, to the second. console.js keeps it true while the page stands. */
export function Time({ at, now }: { at: number; now: number }) {
  return (
    <time class="time" dateTime={new Date(at).toISOString()} title={utc(at)} data-relative>
      {ago(at, now)}
    </time>
  )
}

/** What stands where there is nothing yet, and what to do about it. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <Icon name="stamp" />
      <h3>{title}</h3>
      {toChildArray(children).length === 0 ? null : <div class="hint">{children}</div>}
    </div>
  )
}

/** An id, a name of a setting or another word for machines. */
export function Code({ children }: { children: ComponentChildren }) {
  return <code>{children}</code>
}

/** Copies a text; there only where scripts run. */
export function CopyButton({ text, label = 'Copy' }: { text: string; label?: string }) {
  return (
    <button type="button" class="copy" data-copy={text} hidden>
      <Icon name="copy" />
      <span>{label}</span>
    </button>
  )
}

/** A text to take away whole, such as a key, a command, a call. */
export function Snippet({ title, text }: { title: string; text: string }) {
  return (
    <div class="snippet">
      <header>
        <span>{title}</span>
        <CopyButton text={text} />
      </header>
      <pre>{text}</pre>
    </div>
  )
}

interface StatProps {
  readonly label: string
  readonly value: ComponentChildren
  /** What the figure is made of, or stands against. */
  readonly hint?: ComponentChildren
  readonly tone?: Tone
  /** Below it, such as its course over time. */
  readonly below?: ComponentChildren
}

/** One figure of several, in a `Stats`. */
export function Stat({ label, value, hint, tone, below }: StatProps) {
  return (
    <div class={classes('stat', tone)}>
      <dt>{label}</dt>
      <dd>
        <span class="figure">{value}</span>
        {hint === undefined ? null : <span class="hint">{hint}</span>}
        {below}
      </dd>
    </div>
  )
}

/** Figures beside each other. */
export function Stats({ children }: { children: ComponentChildren }) {
  return <dl class="stats">{children}</dl>
}

/** What is known of one thing, name by name; null leaves an entry out. */
export function Facts({
  entries,
}: {
  entries: readonly (readonly [name: string, value: ComponentChildren] | null)[]
}) {
  return (
    <dl class="facts">
      {entries.map((entry) =>
        entry === null ? null : (
          <div key={entry[0]}>
            <dt>{entry[0]}</dt>
            <dd>{entry[1]}</dd>
          </div>
        ),
      )}
    </dl>
  )
}

/** Where a list goes on. */
export function Pager({ first, next }: { first: string | null; next: string | null }) {
  if (first === null && next === null) return null
  return (
    <nav class="pager" aria-label="Pages">
      {first === null ? null : <LinkButton href={first}>Latest</LinkButton>}
      {next === null ? null : <LinkButton href={next}>Older</LinkButton>}
    </nav>
  )
}

function classes(...names: readonly (string | undefined)[]): string {
  return names.filter((name) => name !== undefined).join(' ')
}
