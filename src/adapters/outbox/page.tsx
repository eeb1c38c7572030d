/** @jsxImportSource preact */
import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import { magicNumbers } from '../../domain/delivery/magic-numbers.ts'
import { counted } from '../../domain/ground/format.ts'
import type { OutboxEntry } from '../../domain/ground/ports.ts'
import type { Segments } from '../../domain/ground/providers.ts'
import {
  Badge,
  Brandmark,
  Button,
  CopyButton,
  curl,
  document,
  Empty,
  ExactTime,
  Facts,
  Field,
  Icon,
  Marked,
  Snippet,
  Time,
  ZoneNote,
} from '../pages/components.tsx'
import { PageFiles } from '../pages/static.ts'
import outboxCss from './outbox.css' with { type: 'text' }
import outboxJs from './outbox.js' with { type: 'text' }

export const outboxFiles = new PageFiles('/outbox', { 'outbox.css': outboxCss, 'outbox.js': outboxJs })

export interface Demo {
  readonly appId: string
  readonly apiKey: string
  readonly brandId: string
}

interface OutboxModel {
  /** Oldest first. */
  readonly messages: readonly OutboxEntry[]
  readonly to: string | null
  readonly demo: Demo | undefined
  readonly origin: string
  readonly now: number
  readonly words: OutboxWords
}

/** How the page shows phone numbers and what SMS cost. */
export interface OutboxWords {
  /** From E.164 digits. */
  readonly formatPhone: (digits: string) => string
  readonly segmentsOf: (text: string) => Segments
  /** Undefined: no prices are imported. */
  readonly priceOf: (sms: OutboxEntry) => string | undefined
}

const PageWords = createContext<OutboxWords>({
  formatPhone: (digits) => `+${digits}`,
  segmentsOf: () => ({ count: 0, encoding: 'GSM-7' }),
  priceOf: () => undefined,
})

type Conversation = ReturnType<typeof conversationsOf>[number]

export function outboxPage({ messages, to, demo, origin, now, words }: OutboxModel): string {
  const conversations = conversationsOf(messages)
  const shown = to ?? conversations[0]?.to ?? null
  const conversation = conversations.find((each) => each.to === shown)
  const last = messages.at(-1)
  return document(
    { title: 'Outbox', now, files: outboxFiles, styles: ['outbox.css'], scripts: ['outbox.js'] },
    <PageWords.Provider value={words}>
      <div class="outbox">
        <header class="bar">
          <h1>
            <Brandmark>Outbox</Brandmark>
          </h1>
          <p class="about hint">Messages stored for development. otpost does not deliver them.</p>
          <ZoneNote />
          <p class="pulse hint" id="live" data-state="disconnected" role="status" hidden />
        </header>
        <main
          id="outbox"
          data-view={to === null ? 'list' : 'messages'}
          data-shown={shown}
          data-empty={conversations.length === 0}
          data-last={last?.id ?? 0}
          data-last-at={last?.createdAt}
        >
          <nav class="rail" aria-label="Recipients">
            <div class="filter">
              <Icon name="search" />
              <label class="sr-only" for="filter">
                Search recipients and messages
              </label>
              <input id="filter" type="search" placeholder="Search" autocomplete="off" spellcheck={false} />
            </div>
            <ul id="recipients" class="recipients">
              {conversations.map((each) => (
                <RecipientLink key={each.to} conversation={each} isShown={each.to === shown} />
              ))}
            </ul>
            <p class="hint" id="no-recipients" hidden={conversations.length > 0}>
              No recipients
            </p>
            <form id="clear" method="post" action="/outbox/clear" hidden={messages.length === 0}>
              <Button small>Delete all messages</Button>
            </form>
          </nav>
          <section class="stage" aria-labelledby="stage-title">
            <header class="head" hidden={shown === null}>
              <a class="back" id="back" href="/outbox">
                <Icon name="back" />
                <span class="sr-only">All recipients</span>
              </a>
              <h2 id="stage-title">{shown === null ? 'Messages' : <Recipient to={shown} />}</h2>
              <p class="hint" id="stage-note">
                {counted(
                  conversation?.sent.length ?? 0,
                  conversation?.channel === 'EMAIL' ? 'e-mail' : 'message',
                )}
              </p>
            </header>
            <div id="messages" class={conversation?.channel === 'EMAIL' ? 'messages mails' : 'messages'}>
              {conversation ? (
                <Messages conversation={conversation} />
              ) : (
                <Empty title={shown === null ? 'No messages yet' : 'No messages for this recipient'}>
                  <p>
                    Send a code with the Try it form or with this command. The message appears on this page.
                  </p>
                  <div id="first-curl">
                    <Snippet title="curl" text={firstCurl(origin, demo)} />
                  </div>
                </Empty>
              )}
            </div>
          </section>
          <aside class="side" aria-labelledby="try-title">
            <TryForm demo={demo} />
          </aside>
        </main>
        <noscript>
          <p class="hint">
            New messages appear automatically only with JavaScript. Reload the page to see them.
          </p>
        </noscript>
      </div>
    </PageWords.Provider>,
  )
}

function conversationsOf(messages: readonly OutboxEntry[]) {
  return [...Map.groupBy(messages, recipientKey)]
    .flatMap(([to, sent]) => sent.slice(-1).map((last) => ({ to, channel: last.channel, sent, last })))
    .sort((a, b) => b.last.id - a.last.id)
}

function recipientKey({ to }: OutboxEntry): string {
  return to.includes('@') ? to.toLowerCase() : to
}

function senderOf({ brandName, brandId }: OutboxEntry): string {
  return brandName ?? brandId ?? 'No brand'
}

/** Only texts without a template are searched, since other numbers look like codes. */
function codeOf({ variables, templateKey, text }: OutboxEntry): string | null {
  if (variables?.otp || templateKey) return variables?.otp ?? null
  return /(?<![\p{L}\p{N}])[0-9]{6}(?![\p{L}\p{N}])/u.exec(text)?.[0] ?? null
}

function firstCurl(origin: string, demo: Demo | undefined): string {
  const app = demo ?? { appId: 'APPID', apiKey: 'API_KEY', brandId: 'BRAND' }
  return curl(`${origin}/otp/send`, { ...app, channel: 'SMS', phone: '+1 202 555 0143' })
}

/** The gaps between groups are margins, so that search and copy have no spaces. */
function Recipient({ to }: { to: string }) {
  const { formatPhone } = useContext(PageWords)
  if (!/^\d{7,15}$/.test(to)) return <bdi>{to}</bdi>
  const groups = formatPhone(to).split(/[^+\d]+/)
  return (
    <bdi class="digits">
      {groups.map((group, index) => (
        <span key={index}>{group}</span>
      ))}
    </bdi>
  )
}

/** The recipient, and what was sent to them. */
function searchTextOf(to: string, sent: readonly OutboxEntry[]): string {
  const parts = sent.flatMap((message) => [
    senderOf(message),
    message.subject ?? '',
    message.text,
    message.templateKey ?? '',
    message.requestId,
  ])
  return [to, ...new Set(parts)].join('\n').toLowerCase()
}

function RecipientLink({
  conversation: { to, channel, sent, last },
  isShown,
}: {
  conversation: Conversation
  isShown: boolean
}) {
  return (
    <li data-search={searchTextOf(to, sent)}>
      <a
        class="recipient"
        href={`/outbox?to=${encodeURIComponent(to)}`}
        aria-current={isShown ? 'true' : undefined}
        data-to={to}
        data-code={codeOf(last)}
        data-request={last.requestId}
      >
        <span class="channel-icon">
          <Icon name={channel === 'SMS' ? 'inbox' : 'stamp'} />
        </span>
        <span class="line">
          <span class="who">
            <span class="sr-only">{channel === 'SMS' ? 'SMS ' : 'E-mail '}</span>
            <Recipient to={to} />
          </span>
          <span class="count">
            {sent.length}
            <span class="sr-only" data-unread-words>
              {' messages'}
            </span>
          </span>
        </span>
        <span class="line">
          <bdi class="preview">
            {(channel === 'SMS' ? last.text : (last.subject ?? 'No subject')).slice(0, 120)}
          </bdi>
          <Time at={Date.parse(last.createdAt)} />
        </span>
      </a>
    </li>
  )
}

function Messages({ conversation: { channel, sent, last } }: { conversation: Conversation }) {
  if (channel === 'EMAIL') {
    return (
      <>
        {sent.toReversed().map((mail) => (
          <Mail key={mail.id} mail={mail} isOpen={mail === last} isReplaced={isReplaced(mail, sent)} />
        ))}
      </>
    )
  }
  return (
    <div class="phone">
      <div class="speaker" />
      <section class="screen" aria-label="Conversation">
        {sent.map((sms, index) => (
          <Sms key={sms.id} sms={sms} previous={sent[index - 1]} isReplaced={isReplaced(sms, sent)} />
        ))}
      </section>
    </div>
  )
}

/** A later code of the brand for the recipient revoked this one. */
function isReplaced(message: OutboxEntry, sent: readonly OutboxEntry[]): boolean {
  const isLater = ({ id, brandId }: OutboxEntry) => id > message.id && brandId === message.brandId
  return codeOf(message) !== null && sent.some((other) => isLater(other) && codeOf(other) !== null)
}

interface SmsProps {
  readonly sms: OutboxEntry
  readonly previous: OutboxEntry | undefined
  readonly isReplaced: boolean
}

function Sms({ sms, previous, isReplaced }: SmsProps) {
  const { segmentsOf, priceOf } = useContext(PageWords)
  const { count, encoding } = segmentsOf(sms.text)
  const code = codeOf(sms)
  const sender = senderOf(sms)
  const facts = [
    sms.route,
    sms.templateKey,
    counted([...sms.text].length, 'character'),
    `${counted(count, 'segment')} (${encoding})`,
    priceOf(sms),
  ]
  return (
    <article class="sms" data-id={sms.id}>
      {previous && senderOf(previous) === sender ? null : <h3 class="sender">{sender}</h3>}
      <div class="bubble">
        <p class="text" dir="auto">
          <Marked text={sms.text} code={code} />
        </p>
        {code !== null && <CodeState code={code} isReplaced={isReplaced} />}
      </div>
      <p class="print">
        <Time at={Date.parse(sms.createdAt)} /> · {facts.filter(Boolean).join(' · ')} · request{' '}
        <RequestLink of={sms} />
      </p>
    </article>
  )
}

function CodeState({ code, isReplaced }: { code: string; isReplaced: boolean }) {
  if (isReplaced) return <Badge tone="quiet">replaced by a later code</Badge>
  return <CopyButton text={code} label={`Copy ${code}`} />
}

function RequestLink({ of: { requestId } }: { of: OutboxEntry }) {
  return (
    <a href={`/admin/deliveries/${requestId}`} title={requestId}>
      …{requestId.slice(-8)}
    </a>
  )
}

interface MailProps {
  readonly mail: OutboxEntry
  readonly isOpen: boolean
  readonly isReplaced: boolean
}

function Mail({ mail, isOpen, isReplaced }: MailProps) {
  const code = codeOf(mail)
  const at = Date.parse(mail.createdAt)
  const subject = mail.subject ?? 'No subject'
  return (
    <article class="mail" data-id={mail.id}>
      <details name="mail" open={isOpen}>
        <summary class="row">
          <h3 class="who" dir="auto">
            {subject}
          </h3>
          <Time at={at} />
          <bdi class="preview">{senderOf(mail)}</bdi>
        </summary>
        <div class="opened">
          <Facts
            entries={{
              From: <bdi>{senderOf(mail)}</bdi>,
              To: <bdi>{mail.to}</bdi>,
              Date: <ExactTime at={at} />,
              Request: <RequestLink of={mail} />,
              Source: <a href={`/outbox/messages/${mail.id}/raw`}>as a mail server gets it</a>,
            }}
          />
          {code === null ? null : (
            <p class="strip">
              Code <mark>{code}</mark>
              <CodeState code={code} isReplaced={isReplaced} />
            </p>
          )}
          {mail.html === null ? null : (
            <Switch
              legend="Part of the e-mail"
              name={`part-${mail.id}`}
              options={{ HTML: 'HTML', Text: 'Text' }}
            />
          )}
          {mail.html === null ? null : (
            // The empty sandbox blocks scripts, forms and access to this page.
            <iframe
              sandbox=""
              loading="lazy"
              referrerpolicy="no-referrer"
              title={`HTML of “${subject}”`}
              src={`/outbox/messages/${mail.id}/html`}
            />
          )}
          <p class="text" dir="auto">
            <Marked text={mail.text || 'This e-mail has no text part.'} code={code} />
          </p>
        </div>
      </details>
    </article>
  )
}

interface SwitchProps {
  readonly legend: string
  readonly name: string
  readonly options: Readonly<Record<string, string>>
}

function Switch({ legend, name, options }: SwitchProps) {
  return (
    <fieldset class="switch">
      <legend class="sr-only">{legend}</legend>
      {Object.entries(options).map(([value, words], index) => (
        <label key={value}>
          <input type="radio" name={name} value={value} checked={index === 0} />
          <span class="option">{words}</span>
        </label>
      ))}
    </fieldset>
  )
}

function TryForm({ demo }: { demo: Demo | undefined }) {
  return (
    <details id="try-fold" open>
      <summary>
        <h2 id="try-title">Try it</h2> <span class="hint">Calls the API from this page</span>
      </summary>
      <form id="try" class="form" novalidate autocomplete="off" data-demo-key={demo?.apiKey}>
        {demo ? null : (
          <p class="explain">
            Create an app and its API key on the console’s <a href="/admin/apps">Apps</a> page, or with{' '}
            <code>otpost app issue APPID</code>. <a href="/admin/brands">Brands</a> lists the brand IDs.
          </p>
        )}
        <div class="pair">
          <Field label="App ID" id="appId" name="appId" isCode value={demo?.appId ?? ''} />
          <Field label="Brand ID" id="brandId" name="brandId" isCode value={demo?.brandId ?? ''} />
        </div>
        <div class="field">
          <label for="apiKey">API key</label>
          <div class="joined">
            <input
              id="apiKey"
              name="apiKey"
              type="password"
              autocomplete="off"
              spellcheck={false}
              value={demo?.apiKey}
            />
            <button type="button" class="copy" id="show-key" aria-pressed="false" aria-label="Show API key">
              Show
            </button>
          </div>
        </div>
        <Switch legend="Channel" name="channel" options={{ SMS: 'SMS', EMAIL: 'E-mail' }} />
        <Field
          label={<span id="recipient-label">Phone</span>}
          id="recipient"
          name="recipient"
          value={demo ? '+1 202 555 0143' : ''}
        />
        <div class="pair">
          <button type="submit" id="send" class="button primary">
            Send code
          </button>
          <button type="button" id="resend" class="button">
            Resend
          </button>
        </div>
        <div class="field code-field">
          <label for="otp">Code</label>
          <p class="arrival" id="arrival" hidden>
            <span id="arrival-text" />
            <button type="button" id="use-code" class="button small primary" hidden>
              Use this code
            </button>
          </p>
          <div class="pair">
            <input
              id="otp"
              name="otp"
              class="code"
              inputMode="numeric"
              autocomplete="one-time-code"
              maxLength={6}
              placeholder="••••••"
              spellcheck={false}
            />
            <button type="button" id="verify" class="button">
              Verify
            </button>
          </div>
        </div>
      </form>
      <details class="magic">
        <summary>Numbers that fail</summary>
        <dl>
          {Object.entries(magicNumbers).map(([digits, { means }]) => (
            <div key={digits}>
              <dt>
                <Recipient to={digits} />
              </dt>
              <dd class="hint">{means}</dd>
            </div>
          ))}
        </dl>
      </details>
      <section id="result" class="result" aria-label="Response" hidden>
        <h3 data-slot="title">Response</h3>
        <p class="hint">
          <code data-slot="error" /> <span data-slot="status" />
        </p>
        <p data-slot="hint" />
        <p data-slot="retry" />
        <div data-slot="json">
          <Snippet title="JSON" text="" />
        </div>
        <div data-slot="curl">
          <Snippet title="curl" text="" />
        </div>
      </section>
    </details>
  )
}
