/** @jsxImportSource preact */

import { type ComponentChildren, createContext } from 'preact'
import { useContext } from 'preact/hooks'
import { renderToString } from 'preact-render-to-string'
import { ago, upcoming, utc } from '../../domain/ground/format.ts'
import { directionOf } from '../../domain/ground/languages.ts'
import { dayMs } from '../../domain/ground/time.ts'
import type { PageFiles } from './static.ts'
import { shellWord } from './words.ts'

// Components of all pages. They work without scripts. page.js handles the `data-` attributes.

const icons = {
  stamp: 'M4 6.5h16v11H4zM4.5 7l7.5 6 7.5-6',
  pulse: 'M3.5 12.5h4l2.5-7 4 13 2.5-6h4',
  heart: 'M12 19.5L4.5 12a4.6 4.6 0 0 1 7.5-5 4.6 4.6 0 0 1 7.5 5z',
  'paper-plane': 'M20.5 4L3.5 10.5l6.5 3 3 6.5zM10 13.5L20.5 4',
  tray: 'M4 13.5l2.5-8h11l2.5 8v5H4zM4 13.5h5l1.5 2.5h3l1.5-2.5h5',
  tag: 'M4 4.5h7.5l8.5 8.5-7 7L4.5 11.5zM8.5 8.5v.01',
  people:
    'M9 11.5a3.5 3.5 0 110-7 3.5 3.5 0 010 7zM3 19.5c0-3.5 2.5-5.5 6-5.5s6 2 6 5.5M15.5 5a3.2 3.2 0 010 6.2M17 14.3c2.5.6 4 2.4 4 5.2',
  key: 'M11.5 12.5l8-8M16 8l2.5 2.5M11 16a4 4 0 11-8 0 4 4 0 018 0z',
  list: 'M8.5 6.5h11M8.5 12h11M8.5 17.5h11M4.5 6.5v.01M4.5 12v.01M4.5 17.5v.01',
  sliders: 'M4 8h8M16 8h4M4 16h4M12 16h8M14 6v4M10 14v4',
  shield: 'M12 3.5l7.5 2.5v6c0 4.5-3.2 7.3-7.5 8.5-4.3-1.2-7.5-4-7.5-8.5V6z',
  inbox: 'M4 5h16v11H11l-4 3.5V16H4z',
  exit: 'M10 4.5H5v15h5M14.5 8l4 4-4 4M18.5 12H9.5',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  alert: 'M12 4l8.5 15.5h-17zM12 10v4M12 16.5v.01',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  next: 'M9.5 5.5L16 12l-6.5 6.5',
  back: 'M14.5 5.5L8 12l6.5 6.5',
  pin: 'M12 21s6.5-6 6.5-11a6.5 6.5 0 00-13 0c0 5 6.5 11 6.5 11zM12 12.5a2.5 2.5 0 110-5 2.5 2.5 0 010 5z',
  coin: 'M12 20a8 8 0 110-16 8 8 0 010 16zM14.5 9.5h-3.7a1.6 1.6 0 000 3.2h2.4a1.6 1.6 0 010 3.2H9.5M12 7.8v1.7M12 15.9v1.3',
  clock: 'M12 20.5a8.5 8.5 0 110-17 8.5 8.5 0 010 17zM12 7.5v5l3 2',
  search: 'M16 16l4.5 4.5M10.5 17a6.5 6.5 0 110-13 6.5 6.5 0 010 13z',
} as const
export type IconName = keyof typeof icons

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={icons[name]} />
    </svg>
  )
}

const favicon =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24'%3E%3Crect width='24' height='24' rx='6' fill='%230f5f6b'/%3E%3Cpath d='M5 8l7 5 7-5M5 7h14v10H5z' fill='none' stroke='%23ffe08a' stroke-width='1.8' stroke-linejoin='round'/%3E%3C/svg%3E"

interface DocumentOptions {
  readonly title: string
  /** Epoch milliseconds, for relative times. */
  readonly now?: number
  readonly files: PageFiles
  readonly scripts?: readonly string[]
  readonly styles?: readonly string[]
}

export function document(
  { title, now = 0, files, scripts = [], styles = [] }: DocumentOptions,
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
        {['page.css', ...styles].map((name) => (
          <link key={name} rel="stylesheet" href={files.url(name)} />
        ))}
        <script type="module" src={files.url('page.js')} {...beforeFirstPaint} />
        {scripts.map((name) => (
          <script key={name} type="module" src={files.url(name)} />
        ))}
      </head>
      <body data-now={now}>
        <Now.Provider value={now}>{body}</Now.Provider>
      </body>
    </html>,
  )
  return `<!doctype html>${html}`
}

/** Times change to the viewer's time zone before they are visible. Preact's types lack the attribute. */
const beforeFirstPaint = { blocking: 'render' }

interface SinglePageOptions extends DocumentOptions {
  readonly place?: string
}

export function singlePage({ place, ...options }: SinglePageOptions, children: ComponentChildren): string {
  return document(
    options,
    <main class="single">
      <Brandmark>{place}</Brandmark>
      <div class="letter">
        <div class="postage">
          <h1>{options.title}</h1>
          {children}
        </div>
      </div>
    </main>,
  )
}

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

interface ControlProps {
  readonly label: ComponentChildren
  readonly name: string
  /** Default: `field-NAME` */
  readonly id?: string
  readonly value?: string
  /** May have code between backticks. */
  readonly hint?: string | undefined
}

function control({ name, id = `field-${name}`, hint }: ControlProps) {
  const hintId = hint === undefined ? undefined : `${id}-hint`
  return {
    attributes: { id, name, 'aria-describedby': hintId },
    below: hintId && (
      <p class="hint" id={hintId}>
        {rich(hint)}
      </p>
    ),
  }
}

interface FieldProps extends ControlProps {
  readonly rows?: number
  readonly required?: boolean
  readonly placeholder?: string | undefined
  readonly maxLength?: number | undefined
  readonly type?: 'text' | 'email' | 'url' | 'tel' | undefined
  readonly isCode?: boolean
  /** In UTC; console.js shows it in the viewer's time zone. */
  readonly isTime?: boolean
  /** Values that the browser suggests. */
  readonly known?: Suggestions | undefined
  /** Of the value, in its own direction. */
  readonly lang?: string
}

/** Values, or each with its words. */
export type Suggestions = readonly (string | readonly string[])[]

export function Field(props: FieldProps) {
  const {
    label,
    value,
    rows,
    required,
    placeholder,
    maxLength,
    type = 'text',
    isCode,
    isTime,
    known,
    lang,
  } = props
  const { attributes, below } = control(props)
  // HTML drops the first line break of a textarea.
  const isKept = rows === undefined || !value?.startsWith('\n')
  const listId = known && `${attributes.id}-known`
  const shared = {
    ...attributes,
    class: isCode ? 'code' : undefined,
    value: isKept ? value : `\n${value}`,
    required,
    placeholder,
    maxLength,
    autocomplete: 'off' as const,
    autocapitalize: isCode ? ('none' as const) : undefined,
    spellcheck: isCode ? false : undefined,
    lang,
    dir: lang ? directionOf(lang) : undefined,
  }
  return (
    <div class="field">
      <label for={attributes.id}>{label}</label>
      {isTime ? (
        <input type="datetime-local" data-utc {...shared} />
      ) : rows === undefined ? (
        <input type={type} list={listId} {...shared} />
      ) : (
        <textarea rows={rows} {...shared} />
      )}
      {known && (
        <datalist id={listId}>
          {known
            .map((each) => [each].flat())
            .map(([value, words]) => (
              <option key={value} value={value} label={words} />
            ))}
        </datalist>
      )}
      {below}
    </div>
  )
}

interface SelectProps extends ControlProps {
  readonly options: Options
}

/** Words by value, or such options by the name of their group. */
export type Options = Readonly<Record<string, string | Readonly<Record<string, string>>>>

export function Select(props: SelectProps) {
  const { attributes, below } = control(props)
  return (
    <div class="field">
      <label for={attributes.id}>{props.label}</label>
      <select {...attributes}>
        {Object.entries(props.options).map(([name, words]) =>
          typeof words === 'string' ? (
            <option key={name} value={name} selected={name === props.value}>
              {words}
            </option>
          ) : (
            <optgroup key={name} label={name}>
              {Object.entries(words).map(([value, text]) => (
                <option key={value} value={value} selected={value === props.value}>
                  {text}
                </option>
              ))}
            </optgroup>
          ),
        )}
      </select>
      {below}
    </div>
  )
}

/** The text of a file. console.js reads a file into it. */
export function FileField(props: Pick<FieldProps, keyof ControlProps | 'placeholder'>) {
  const id = props.id ?? `field-${props.name}`
  return (
    <>
      <div class="field" data-file-of={id} hidden>
        <label for={`${id}-file`}>Choose a file</label>
        <input id={`${id}-file`} type="file" accept=".csv,text/csv,text/plain" />
      </div>
      <Field {...props} rows={8} required isCode />
    </>
  )
}

interface ChoiceProps extends ControlProps {
  /** A checked box sends `value`, or `1`. */
  readonly checked: boolean
}

export function Choice(props: ChoiceProps) {
  const { attributes, below } = control(props)
  return (
    <div class="choice">
      <input {...attributes} type="checkbox" value={props.value ?? '1'} checked={props.checked} />
      <div>
        <label for={attributes.id}>{props.label}</label>
        {below}
      </div>
    </div>
  )
}

export function FieldGroup({ legend, children }: Readonly<Record<'legend' | 'children', ComponentChildren>>) {
  return (
    <fieldset class="group">
      <legend>{legend}</legend>
      {children}
    </fieldset>
  )
}

interface ButtonProps {
  readonly kind?: 'primary' | 'plain' | 'danger'
  readonly small?: boolean
  readonly name?: string
  readonly value?: string
  /** In place of that of the form. */
  readonly action?: string
  readonly children: ComponentChildren
}

export function Button({ kind = 'plain', small, name, value, action, children }: ButtonProps) {
  return (
    <button
      type="submit"
      class={classes('button', kind, small && 'small')}
      name={name}
      value={value}
      formAction={action}
    >
      {children}
    </button>
  )
}

export function LinkButton({ kind = 'plain', small, href, children }: ButtonProps & { href: string }) {
  return (
    <a class={classes('button', kind, small && 'small')} href={href}>
      {children}
    </a>
  )
}

/** The last three are for messages. */
export type Tone = 'good' | 'bad' | 'warn' | 'quiet' | 'sent' | 'lost' | 'later'

export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>
}

/** The time of rendering. */
export const Now = createContext(0)

/** A relative time, which page.js keeps current. Beyond a day it would be too inexact, so the time is exact. */
/** @param isUpcoming of what is to happen, such as `in 2 h` */
export function Time({ at, isUpcoming = false }: { at: number; isUpcoming?: boolean }) {
  const now = useContext(Now)
  if (Math.abs(now - at) > dayMs) return <ExactTime at={at} toMinute />
  return (
    <time
      class="time"
      dateTime={new Date(at).toISOString()}
      title={utc(at)}
      data-relative={isUpcoming ? 'upcoming' : ''}
    >
      {isUpcoming ? upcoming(at, now) : ago(at, now)}
    </time>
  )
}

/** An exact time in UTC. page.js shows it in the time zone of the page. */
export function ExactTime({ at, toMinute = false }: { at: number; toMinute?: boolean }) {
  return toMinute ? (
    <Instant at={at} form="minute">
      {utc(at).slice(0, 16)}
    </Instant>
  ) : (
    <Instant at={at} form="full">
      {utc(at)}
    </Instant>
  )
}

/** @param form of page.js, for another time zone */
export function Instant({ at, form, children }: { at: number; form: string; children: string }) {
  return (
    <time class="time" dateTime={new Date(at).toISOString()} title={utc(at)} data-local={form}>
      {children}
    </time>
  )
}

const day = String.raw`\d{4}-\d\d-\d\d`
const timeInText = new RegExp(
  String.raw`(${day} \d\d:\d\d to (?:${day} )?\d\d:\d\d UTC|${day} \d\d:\d\d(?::\d\d)? UTC)`,
)

/** A text in which page.js can show times in the time zone of the page. */
export function withTimes(text: string): ComponentChildren {
  return text
    .split(timeInText)
    .map((part, index) => (index % 2 === 0 ? part : <TimeWords key={index} text={part} />))
}

/** Such as `2026-03-01 12:00 UTC` or `2026-03-01 12:00 to 13:00 UTC`. */
function TimeWords({ text }: { text: string }) {
  const [first = '', last] = text.split(' to ')
  const date = first.slice(0, 10)
  const epochOf = (words: string) => Date.parse(`${words.replace(' UTC', '').replace(' ', 'T')}Z`)
  if (last === undefined)
    return (
      <Instant at={epochOf(first)} form={/\d:\d\d:/.test(first) ? 'full' : 'zoned'}>
        {first}
      </Instant>
    )
  return (
    <>
      <ExactTime at={epochOf(first)} toMinute /> to{' '}
      <Instant at={epochOf(last.includes('-') ? last : `${date} ${last}`)} form="zoned">
        {last}
      </Instant>
    </>
  )
}

/** Names the time zone of the page. page.js shows the other one too. */
export function ZoneNote() {
  return (
    <p class="zone hint" data-zone>
      Times in UTC
    </p>
  )
}

/** page.js removes it with UTC times. */
export function UtcNote({ children }: { children: string }) {
  return <span data-utc-note>{children}</span>
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <Icon name="stamp" />
      <strong>{title}</strong>
      {children && <div class="hint">{rich(children)}</div>}
    </div>
  )
}

/** Hidden without scripts. */
export function CopyButton({ text, label = 'Copy' }: { text: string; label?: string }) {
  return (
    <button type="button" class="copy" data-copy={text}>
      <Icon name="copy" />
      <span>{label}</span>
    </button>
  )
}

export function Marked({ text, code }: { text: string; code: string | null | undefined }) {
  const start = code ? text.indexOf(code) : -1
  if (!code || start < 0) return <>{text}</>
  return (
    <>
      {text.slice(0, start)}
      <mark>{code}</mark>
      {text.slice(start + code.length)}
    </>
  )
}

export function curl(url: string, body: object, indent?: number): string {
  const json = JSON.stringify(body, null, indent)
  return `curl -s ${shellWord(url)} \\\n  -H 'content-type: application/json' \\\n  -d ${shellWord(json)}`
}

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

/** Null omits an entry. */
export function Facts({ entries }: { entries: Readonly<Record<string, ComponentChildren>> }) {
  return (
    <dl class="facts">
      {Object.entries(entries).map(
        ([name, value]) =>
          value !== null && (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  )
}

/** Text between backticks becomes code; its times are those of `withTimes`. */
export function rich(text: ComponentChildren): ComponentChildren {
  if (typeof text !== 'string') return text
  return text
    .split('`')
    .map((part, index) => (index % 2 === 0 ? withTimes(part) : <code key={part}>{part}</code>))
}

export function classes(...names: readonly (string | false | undefined)[]): string {
  return names.filter(Boolean).join(' ')
}
