/** @jsxImportSource preact */
import { type ComponentChildren, createContext } from 'preact'
import { useContext } from 'preact/hooks'
import {
  Brandmark,
  Button,
  classes,
  document,
  Icon,
  type IconName,
  LinkButton,
  rich,
  singlePage,
} from '../pages/components.tsx'
import type { PageContext } from './models.ts'

// What only the pages of the console have: its navigation, forms with a CSRF token, and tables.

/** A part of the console that the navigation leads to. */
type Section = 'overview' | 'requests' | 'brands' | 'apps' | 'deliveries' | 'audit' | 'settings'

const sections: readonly { section: Section; title: string; href: string; icon: IconName }[] = [
  { section: 'overview', title: 'Overview', href: '/admin', icon: 'pulse' },
  { section: 'deliveries', title: 'Deliveries', href: '/admin/deliveries', icon: 'paper-plane' },
  { section: 'requests', title: 'Requests', href: '/admin/requests', icon: 'tray' },
  { section: 'brands', title: 'Brands', href: '/admin/brands', icon: 'tag' },
  { section: 'apps', title: 'Apps', href: '/admin/apps', icon: 'key' },
  { section: 'audit', title: 'Audit', href: '/admin/audit', icon: 'list' },
  { section: 'settings', title: 'Settings', href: '/admin/settings', icon: 'sliders' },
]

interface ConsolePageOptions {
  readonly title: string
  /** Null: it is in none. */
  readonly section: Section | null
  /** Beside the title: where it leads back to, as on a page below another. */
  readonly parent?: { readonly title: string; readonly href: string }
  /** What can be done with the page as a whole: buttons, links. */
  readonly actions?: ComponentChildren
  /** Names of modules beside console.js. */
  readonly scripts?: readonly string[]
  /** Names of style sheets before console.css. */
  readonly styles?: readonly string[]
}

/** A page of a session: navigation, what has just happened, the title, the content. */
export function consolePage(
  pageContext: PageContext,
  { title, section, parent, actions, scripts = [], styles = [] }: ConsolePageOptions,
  content: ComponentChildren,
): string {
  const options = {
    title,
    now: pageContext.now,
    base: '/admin',
    scripts: ['console.js', ...scripts],
    styles: [...styles, 'console.css'],
  }
  const { version, csrfToken, pendingRequests, hasOutbox, flash } = pageContext
  return document(
    options,
    <CsrfToken.Provider value={csrfToken}>
      <div class="console">
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
                    {entry.section === 'requests' && (
                      // Present without requests too, so that the refreshed overview can show a later number.
                      <span class="pending" data-live="pending" hidden={pendingRequests === 0}>
                        {pendingRequests}
                        <span class="sr-only"> waiting</span>
                      </span>
                    )}
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
          <div class="session">
            <Form action="/admin/logout">
              <button type="submit" class="sign-out">
                <Icon name="exit" />
                <span>Sign out</span>
              </button>
            </Form>
            <p class="version">{version}</p>
          </div>
        </header>
        <main id="content" tabIndex={-1}>
          {flash && <Notice tone={flash.tone}>{flash.text}</Notice>}
          <header class="title">
            <div>
              {parent && (
                <p class="parent">
                  <a href={parent.href}>{parent.title}</a> <span aria-hidden="true">/</span>
                </p>
              )}
              <h1>{title}</h1>
            </div>
            {actions && <div class="actions">{actions}</div>}
          </header>
          {content}
        </main>
      </div>
    </CsrfToken.Provider>,
  )
}

/** A page for one who is not signed in. */
export function signedOutPage(
  title: string,
  content: ComponentChildren,
  scripts: readonly string[] = [],
): string {
  return singlePage(
    { title, base: '/admin', place: 'Console', scripts: ['console.js', ...scripts], styles: ['console.css'] },
    content,
  )
}

/** Something that was done, or went wrong, said above everything else; screen readers say it at once. */
export function Notice({ tone, children }: { tone: 'good' | 'bad'; children: ComponentChildren }) {
  return (
    <div class={`notice ${tone}`} role={tone === 'bad' ? 'alert' : 'status'}>
      <Icon name={tone === 'good' ? 'check' : 'alert'} />
      <div>{children}</div>
    </div>
  )
}

interface CardProps {
  readonly title?: ComponentChildren
  /** A sentence below the title; a string may have code between backticks. */
  readonly hint?: ComponentChildren | undefined
  readonly actions?: ComponentChildren
  readonly class?: string
  readonly children?: ComponentChildren
}

/** A part of a page, on a sheet of its own. */
export function Card({ title, hint, actions, class: extra, children }: CardProps) {
  return (
    <section class={classes('card', extra)}>
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
  /** Numbers stand at the end, so that their digits are below each other. */
  readonly align?: 'end'
  /** Its cells name their rows; without one that does, the first column does. */
  readonly isHeader?: boolean
  /** Its title is for screen readers alone, as above a column of buttons. */
  readonly isQuiet?: boolean
}

interface TableProps {
  /** What is in it; said by screen readers, not shown. */
  readonly caption: string
  /** A title alone is a column without options. */
  readonly columns: readonly (string | Column)[]
  readonly rows: readonly (readonly ComponentChildren[])[]
  /** What stands there while there are no rows: words, or an `Empty`. */
  readonly empty: ComponentChildren
  /** It is mostly numbers: on a phone they stand beside each other, not one below the other. */
  readonly figures?: boolean
}

/** Rows below columns; on a phone each row becomes a small list of its own. */
export function Table({ caption, columns: wanted, rows, empty, figures = false }: TableProps) {
  const columns = wanted.map((column): Column => (typeof column === 'string' ? { title: column } : column))
  if (rows.length === 0) return typeof empty === 'string' ? <p class="none">{empty}</p> : empty
  const header = Math.max(
    0,
    columns.findIndex(({ isHeader }) => isHeader),
  )
  return (
    <div class={classes('table', figures && 'figures')}>
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

const CsrfToken = createContext('')

interface FormProps {
  /** The path it is posted to. */
  readonly action: string
  /** A question that is asked before it is sent, such as `Revoke the key …7f3a? What uses it stops working at once.` */
  readonly confirm?: string | undefined
  /** Fields that are not shown. */
  readonly hidden?: Readonly<Record<string, string>>
  /** `inline`: fields and buttons in one line. */
  readonly class?: string
  readonly id?: string
  /** The words of its button. */
  readonly submit?: string
  readonly kind?: 'primary' | 'plain' | 'danger'
  readonly children?: ComponentChildren
}

/** A form that is posted, with the CSRF token of this session. */
export function Form({
  action,
  confirm,
  hidden = {},
  class: extra,
  id,
  submit,
  kind = 'primary',
  children,
}: FormProps) {
  const fields = Object.entries({ csrf: useContext(CsrfToken), ...hidden })
  return (
    <form
      method="post"
      action={action}
      class={classes('form', extra)}
      id={id}
      data-confirm={confirm}
      autocomplete="off"
    >
      {fields.map(([name, value]) => (
        <input key={name} type="hidden" name={name} value={value} />
      ))}
      {children}
      {submit && (
        <p class="buttons">
          <Button kind={kind}>{submit}</Button>
        </p>
      )}
    </form>
  )
}

/** Shapes that fill the room they get, whose figures stand beside them. */
export function Drawing(props: { class?: string; viewBox: string; children: ComponentChildren }) {
  return <svg {...props} preserveAspectRatio="none" aria-hidden="true" focusable="false" />
}

/** Where a list goes on. */
export function Pager({ first, next }: { first: string | null; next: string | null }) {
  if (first === null && next === null) return null
  return (
    <nav class="pager" aria-label="Pages">
      {first && <LinkButton href={first}>Latest</LinkButton>}
      {next && <LinkButton href={next}>Older</LinkButton>}
    </nav>
  )
}
