// @ts-check

/** @typedef {'SMS' | 'EMAIL'} Channel */
/** @typedef {{ id: number, at: Date | null, channel: Channel, to: string, sender: string, text: string, subject: string, hasHtml: boolean, route: string | null, templateKey: string | null, code: string | null, requestId: string | null }} Message */
/** @typedef {{ to: string, channel: Channel, sent: Message[], last: Message, unread: number }} Conversation */
/** @typedef {{ status: number, line: string, json: Record<string, unknown>, body: string, retryAfter: string | null }} Answer */

const POLL_SECONDS = 25
const MAX_BACKOFF = 15_000

/** What a code means at this form, where the service's own message leaves it open. */
const HINTS = new Map([
  ['forbidden', '“otpost app issue APPID” prints a new key.'],
  ['brand_not_approved', '“otpost brand list” shows the brands and their status.'],
  ['cooldown_active', 'The code sent a moment ago still works.'],
  ['mismatch', 'A code takes three wrong guesses, then it is locked.'],
  ['max_attempts', 'This code stays locked. Resend makes a new one.'],
  ['not_found', 'The code has expired, was used already, or was replaced.'],
  ['sms_failed', 'The provider did not take the message, so its code was revoked. The server log says why.'],
])

// Reading what the server says

/** @param {unknown} value @returns {Record<string, unknown>} */
const asRecord = (value) =>
  typeof value === 'object' && value !== null ? /** @type {Record<string, unknown>} */ (value) : {}

/** @param {unknown} value */
const asText = (value) => (typeof value === 'string' && value !== '' ? value : null)

/** @param {Record<string, unknown>} raw @returns {string | null} */
const findCode = (raw) => {
  const known = asText(asRecord(raw.variables).otp)
  // Other templates carry order numbers, which can look just like a code.
  if (known || asText(raw.templateKey)) return known
  return /(?<![\p{L}\p{N}])[0-9]{6}(?![\p{L}\p{N}])/u.exec(asText(raw.text) ?? '')?.[0] ?? null
}

/** @param {unknown} value @returns {Message | null} */
const readMessage = (value) => {
  const raw = asRecord(value)
  if (typeof raw.id !== 'number' || !Number.isSafeInteger(raw.id)) return null
  const at = new Date(asText(raw.createdAt) ?? Number.NaN)
  return {
    id: raw.id,
    at: Number.isNaN(at.getTime()) ? null : at,
    channel: raw.channel === 'EMAIL' ? 'EMAIL' : 'SMS',
    to: asText(raw.to) ?? 'unknown',
    sender: asText(raw.brandName) ?? asText(raw.brandId) ?? 'Unnamed sender',
    text: asText(raw.text) ?? '',
    subject: asText(raw.subject) ?? 'No subject',
    hasHtml: Boolean(raw.html),
    route: asText(raw.route),
    templateKey: asText(raw.templateKey),
    code: findCode(raw),
    requestId: asText(raw.requestId),
  }
}

/** @template T @param {() => T} read */
const attempt = (read) => {
  try {
    return read()
  } catch {
    return null
  }
}

/** @param {string} to */
const recipientKey = (to) => (to.includes('@') ? to.trim().toLowerCase() : to.replace(/\D/g, '') || to)

// Small tools for the page

/** @param {string} selector @param {ParentNode} [root] */
const find = (selector, root = document) => {
  const node = root.querySelector(selector)
  if (node instanceof HTMLElement) return node
  throw new Error(`The page has no ${selector}`)
}

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' })
const preciseClock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' })
const shortDate = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' })
const fullDate = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'medium' })

/** @param {Date} at */
const shortTime = (at) => {
  const today = at.toDateString() === new Date().toDateString()
  return today ? clock.format(at) : `${shortDate.format(at)}, ${clock.format(at)}`
}

/** Fills the slots of a piece of the page; null takes a slot out.
 * @template {ParentNode} T @param {T} root @param {Record<string, string | Node | Date | null>} slots */
const fill = (root, slots) => {
  for (const [name, value] of Object.entries(slots)) {
    const slot = find(`[data-slot="${name}"]`, root)
    if (value === null) slot.remove()
    else if (value instanceof Date) {
      slot.setAttribute('datetime', value.toISOString())
      slot.title = fullDate.format(value)
      slot.textContent = shortTime(value)
    } else slot.replaceChildren(value)
  }
  return root
}

/** @param {string} name @param {Parameters<typeof fill>[1]} slots */
const make = (name, slots) => {
  const template = find(`template#${name}`)
  if (!(template instanceof HTMLTemplateElement)) throw new Error(`#${name} is no template`)
  return fill(/** @type {DocumentFragment} */ (template.content.cloneNode(true)), slots)
}

/** @param {string} tag @param {string} text */
const element = (tag, text) => {
  const node = document.createElement(tag)
  node.textContent = text
  return node
}

/** @param {ParentNode} root @param {string} name */
const setIcon = (root, name) => root.querySelector('use')?.setAttribute('href', `#icon-${name}`)

/** @param {number} count @param {string} noun */
const plural = (count, noun) => `${count} ${noun}${count === 1 ? '' : 's'}`

/** Gaps come from style alone, so that searching and copying give the plain digits. @param {string} to */
const spelled = (to) => {
  const line = element('span', to)
  if (!/^\d{7,15}$/.test(to)) return line
  const groups = [to.slice(-4)]
  for (let end = to.length - 4; end > 0; end -= 3) groups.unshift(to.slice(Math.max(0, end - 3), end))
  line.replaceChildren(...groups.map((group) => element('span', group)))
  line.className = 'digits'
  return line
}

/** @param {string} text @param {string | null} code */
const marked = (text, code) => {
  const line = document.createDocumentFragment()
  const start = code ? text.indexOf(code) : -1
  if (code && start >= 0)
    line.append(text.slice(0, start), element('mark', code), text.slice(start + code.length))
  else line.append(text)
  return line
}

/** @param {string} text */
const announce = (text) => {
  find('#announce').textContent = text
}

/** @param {string} text @param {ParentNode} root @param {string} label */
const offerCopy = (text, root, label) => {
  const button = find('button[data-slot="copy"]', root)
  button.dataset.copy = text
  button.textContent = label
}

/** @param {HTMLElement} button */
const copy = async (button) => {
  const label = button.textContent
  // Browsers keep the clipboard from pages that came over plain http from another machine.
  const written = navigator.clipboard?.writeText(button.dataset.copy ?? '') ?? Promise.reject()
  button.textContent = await written.then(
    () => 'Copied',
    () => 'Copying is blocked here',
  )
  announce(button.textContent)
  setTimeout(() => {
    button.textContent = label
  }, 1_600)
}

/** @param {string} title @param {string} text */
const snippet = (title, text) => {
  const piece = make('snippet', { title, text })
  offerCopy(text, piece, 'Copy')
  find('button', piece).setAttribute('aria-label', `Copy ${title}`)
  return piece
}

/** @param {Element | null | undefined} node */
const highlight = (node) => {
  node?.classList.add('fresh')
  setTimeout(() => node?.classList.remove('fresh'), 2_500)
}

// What has been sent

/** @type {Map<string, Conversation>} */
const conversations = new Map()
/** @type {Map<number, Message>} */
const messages = new Map()
/** @type {{ selected: string | null, openMail: number | null, tab: string, lastId: number }} */
const state = { selected: null, openMail: null, tab: 'HTML', lastId: 0 }

const byLastMessage = () => [...conversations.values()].sort((a, b) => b.last.id - a.last.id)
const selected = () => conversations.get(state.selected ?? '')

/** @param {Message} message */
const keep = (message) => {
  const { id, to, channel } = message
  const conversation = conversations.get(to) ?? { to, channel, sent: [], last: message, unread: 0 }
  conversations.set(to, conversation)
  conversation.sent.push(message)
  conversation.last = message
  messages.set(id, message)
  state.lastId = Math.max(state.lastId, id)
  return conversation
}

// The list of recipients

const list = find('#recipients')
const filter = /** @type {HTMLInputElement} */ (find('#filter'))
/** @type {Map<string, HTMLElement>} */
const items = new Map()

/** @param {Conversation} conversation */
const passesFilter = ({ to, sent }) => {
  const wanted = filter.value.trim().toLowerCase()
  const digits = /^[\d\s+().-]+$/.test(wanted) ? wanted.replace(/\D/g, '') : wanted
  return to.toLowerCase().includes(digits) || sent.some(({ sender }) => sender.toLowerCase().includes(wanted))
}

/** @param {Conversation} conversation */
const itemFor = (conversation) => {
  const { to, channel, sent, last, unread } = conversation
  const item = items.get(to) ?? find('li', make('recipient', {}))
  items.set(to, item)
  const button = find('button', item)
  button.dataset.to = to
  button.toggleAttribute('data-unread', unread > 0)
  button.setAttribute('aria-current', String(to === state.selected))
  setIcon(item, channel === 'SMS' ? 'sms' : 'mail')
  return fill(item, {
    channel: channel === 'SMS' ? 'SMS ' : 'E-mail ',
    to: spelled(to),
    at: last.at ?? '',
    preview: (channel === 'SMS' ? last.text : last.subject).slice(0, 120),
    count: String(sent.length),
    unread: unread > 0 ? ` messages, ${unread} new` : ' messages',
  })
}

const listButtons = () => [...list.querySelectorAll('button')]

/** One tab stop for the whole list; arrow keys move it. @param {Element | null} preferred */
const setTabStop = (preferred) => {
  const buttons = listButtons()
  const stop = buttons.find((button) => button === preferred) ?? buttons[0]
  for (const button of buttons) button.tabIndex = button === stop ? 0 : -1
}

const renderRecipients = () => {
  const wanted = byLastMessage().filter(passesFilter).map(itemFor)
  const focused = listButtons().find((button) => button === document.activeElement)
  if (wanted.length !== list.children.length || wanted.some((item, index) => item !== list.children[index])) {
    list.replaceChildren(...wanted)
    focused?.focus({ preventScroll: true })
  }
  setTabStop(focused ?? list.querySelector('[aria-current="true"]'))
  find('#no-recipients').hidden = wanted.length > 0
  find('#no-recipients').textContent = filter.value ? 'No recipient matches' : 'No recipients yet'
  document.body.toggleAttribute('data-empty', conversations.size === 0)
  const unread = [...conversations.values()].reduce((sum, conversation) => sum + conversation.unread, 0)
  document.title = `${unread > 0 ? `(${unread}) ` : ''}Outbox · otpost`
}

/** @param {KeyboardEvent} event */
const moveInList = (event) => {
  const buttons = listButtons()
  const at = buttons.findIndex((button) => button.matches(':focus'))
  const moves = Object.entries({ ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 })
  const target = buttons[moves.find(([key]) => key === event.key)?.[1] ?? -1]
  if (!target) return
  event.preventDefault()
  setTabStop(target)
  target.focus()
}

// The chosen conversation

const stage = find('#messages')

/** @param {Message} message @param {Message} [previous] */
const smsArticle = ({ id, at, code, text, sender, route, templateKey }, previous) => {
  const facts = [route, templateKey, plural([...text].length, 'character')].filter(Boolean).join(' · ')
  const piece = make('sms', {
    sender: previous?.sender === sender ? null : sender,
    text: marked(text, code),
    at: at ?? '',
    print: at ? ` · ${facts}` : facts,
  })
  if (code) offerCopy(code, piece, `Copy ${code}`)
  else fill(piece, { copy: null })
  find('article', piece).dataset.id = String(id)
  return piece
}

/** @param {Message} message */
const mailArticle = ({ id, at, sender, subject }) => {
  const piece = make('mail', { subject, sender, at: at ?? '' })
  find('article', piece).dataset.id = String(id)
  return piece
}

/** @param {Message} message */
const mailFrame = ({ id, subject }) => {
  const frame = document.createElement('iframe')
  // An empty sandbox: no scripts, no forms, no way to reach this page. It has to be set before the source.
  frame.setAttribute('sandbox', '')
  frame.referrerPolicy = 'no-referrer'
  frame.title = `HTML of “${subject}”`
  frame.src = `/outbox/messages/${id}/html`
  return frame
}

/** @param {ParentNode} root @param {Message} message */
const showTab = (root, message) => {
  const shown = message.hasHtml ? state.tab : 'Text'
  for (const tab of root.querySelectorAll('[role="tab"]')) {
    tab.toggleAttribute('hidden', tab.textContent === 'HTML' && !message.hasHtml)
    tab.setAttribute('aria-selected', String(tab.textContent === shown))
    tab.setAttribute('tabindex', tab.textContent === shown ? '0' : '-1')
  }
  const sheet = find('.sheet', root)
  sheet.setAttribute('aria-label', shown)
  sheet.classList.toggle('text', shown === 'Text')
  sheet.dir = 'auto'
  const text = marked(message.text || 'This mail has no text part.', message.code)
  sheet.replaceChildren(shown === 'Text' ? text : mailFrame(message))
}

/** @param {Message} message */
const mailBody = (message) => {
  const { at, code, sender, to } = message
  const piece = make('opened', { from: sender, to, date: at ? fullDate.format(at) : 'unknown' })
  if (code) offerCopy(code, fill(piece, { code }), `Copy ${code}`)
  else fill(piece, { strip: null })
  showTab(piece, message)
  return piece
}

/** @param {number | null} id */
const openMail = (id) => {
  state.openMail = id
  for (const article of stage.querySelectorAll('article')) {
    const message = messages.get(Number(article.dataset.id))
    const open = message?.id === id
    if (!message || article.hasAttribute('data-open') === open) continue
    article.toggleAttribute('data-open', open)
    find('.row', article).setAttribute('aria-expanded', String(open))
    if (open) article.append(mailBody(message))
    else find('.opened', article).remove()
  }
}

/** @param {MouseEvent} event */
const pressedInStage = ({ target }) => {
  const article = target instanceof Element ? target.closest('article') : null
  const message = messages.get(Number(article?.dataset.id))
  if (!article || !message || !(target instanceof Element)) return
  if (target.closest('.row')) openMail(state.openMail === message.id ? null : message.id)
  if (!target.matches('[role="tab"]')) return
  state.tab = target.textContent ?? ''
  showTab(article, message)
}

/** @param {KeyboardEvent} event */
const moveInTabs = ({ target, key }) => {
  if (!(target instanceof HTMLElement && target.matches('[role="tab"]'))) return
  const next = { ArrowLeft: target.previousElementSibling, ArrowRight: target.nextElementSibling }[key]
  if (!(next instanceof HTMLElement) || next.hidden) return
  next.click()
  next.focus()
}

const renderHead = () => {
  find('#head').hidden = state.selected === null
  find('#stage-title').replaceChildren(state.selected ? spelled(state.selected) : 'Messages')
  const noun = selected()?.channel === 'EMAIL' ? 'mail' : 'message'
  find('#stage-note').textContent = plural(selected()?.sent.length ?? 0, noun)
}

const renderConversation = () => {
  const conversation = selected()
  renderHead()
  if (!conversation) {
    const title = state.selected ? 'Nothing for this recipient yet' : 'Nothing has been sent yet'
    stage.replaceChildren(make('empty', { title, curl: snippet('curl', firstCurl()) }))
  } else if (conversation.channel === 'EMAIL') {
    stage.replaceChildren(...conversation.sent.map(mailArticle).reverse())
    stage.scrollTop = 0
    openMail(conversation.last.id)
  } else {
    stage.replaceChildren(make('phone', {}))
    const screen = find('.screen', stage)
    // Whatever scrolls has to be within reach of the keyboard.
    screen.tabIndex = 0
    screen.append(
      ...conversation.sent.map((message, index) => smsArticle(message, conversation.sent[index - 1])),
    )
    screen.scrollTop = screen.scrollHeight
  }
  stage.classList.toggle('mails', conversation?.channel === 'EMAIL')
}

/** Adds to what is on screen, so that an open mail, the focus and the scroll position stay.
 * @param {Message} message @param {Conversation} conversation */
const showArrival = (message, { channel, sent }) => {
  const previous = sent[sent.length - 2]
  renderHead()
  if (!previous) renderConversation()
  else if (channel === 'EMAIL') {
    stage.prepend(mailArticle(message))
    if (state.openMail === null || state.openMail === previous.id) openMail(message.id)
  } else {
    const screen = find('.screen', stage)
    const atEnd = screen.scrollHeight - screen.scrollTop - screen.clientHeight < 80
    screen.append(smsArticle(message, previous))
    if (atEnd) screen.scrollTop = screen.scrollHeight
  }
}

const wide = matchMedia('(width >= 68rem)')

const linked = () => {
  const to = attempt(() => decodeURIComponent(/^#to=(.+)$/.exec(location.hash)?.[1] ?? '')) ?? ''
  return (conversations.has(to) ? to : recipientKey(to)) || null
}

/** With room for both, something is always chosen, and stays so however many others arrive. */
const choose = () => {
  const before = state.selected
  const link = linked()
  const byDefault = wide.matches ? (before ?? byLastMessage()[0]?.to ?? null) : null
  state.selected = link ?? byDefault
  document.body.dataset.view = link ? 'messages' : 'list'
  const conversation = selected()
  if (conversation) conversation.unread = 0
  renderRecipients()
  if (state.selected !== before || !stage.hasChildNodes()) renderConversation()
}

// Live

/** @param {string} query @param {AbortSignal} signal @returns {Promise<Message[]>} */
const fetchMessages = async (query, signal) => {
  const limit = AbortSignal.timeout((POLL_SECONDS + 10) * 1_000)
  const options = { signal: AbortSignal.any([signal, limit]), cache: /** @type {const} */ ('no-store') }
  const response = await fetch(`/outbox/messages?${query}`, options)
  const found = asRecord(await response.json()).messages
  if (!response.ok || !Array.isArray(found)) throw new Error(`The outbox answered ${response.status}`)
  const readable = found.map(readMessage).filter((message) => message !== null)
  return readable.sort((a, b) => a.id - b.id)
}

/** @param {Message[]} fetched */
const receive = (fetched) => {
  const arrived = fetched.filter(({ id }) => !messages.has(id))
  for (const message of arrived) {
    const conversation = keep(message)
    if (message.to === state.selected) showArrival(message, conversation)
    else conversation.unread += 1
    offerCode(message)
  }
  const last = arrived.at(-1)
  if (!last) return
  choose()
  for (const { id, to } of arrived) {
    highlight(items.get(to)?.firstElementChild)
    highlight(stage.querySelector(`[data-id="${id}"]`))
  }
  announce(`New ${last.channel === 'SMS' ? 'SMS' : 'e-mail'} to ${last.to}`)
}

/** After an outage the server may have come back with another database. @param {Message[]} fetched */
const reload = (fetched) => {
  const last = messages.get(state.lastId)
  if (last && fetched.some(({ id, at }) => id === last.id && Number(at) === Number(last.at)))
    return receive(fetched)
  for (const known of [conversations, messages, items]) known.clear()
  Object.assign(state, { selected: null, lastId: 0 })
  stage.replaceChildren()
  for (const message of fetched) keep(message)
  choose()
}

/** @param {boolean} connected */
const setLive = (connected) => {
  const text = connected ? 'Live' : 'Disconnected, retrying'
  find('#live').dataset.state = connected ? 'connected' : 'disconnected'
  find('#live').toggleAttribute('data-failed', !connected)
  if (find('#live-text').textContent !== text) find('#live-text').textContent = text
}

/** @param {number} ms */
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** @param {AbortSignal} signal */
const listen = async (signal) => {
  for (let failures = 0, known = false; !signal.aborted; ) {
    const [asked, lastId] = [performance.now(), state.lastId]
    try {
      const query = known ? `after=${state.lastId}&wait=${POLL_SECONDS}` : 'limit=500'
      const fetched = await fetchMessages(query, signal)
      if (known) receive(fetched)
      else reload(fetched)
      setLive(true)
      // A server that does not hold the poll open must not be flooded.
      if (known && state.lastId === lastId && performance.now() - asked < 1_000) await pause(1_000)
      failures = 0
      known = true
    } catch {
      if (signal.aborted) return
      setLive(false)
      known = false
      await pause(Math.min(MAX_BACKOFF, 500 * 2 ** failures++))
    }
  }
}

let leaving = new AbortController()

const startListening = () => {
  leaving = new AbortController()
  listen(leaving.signal)
}

// Try it

const form = /** @type {HTMLFormElement} */ (find('#try'))
const result = find('#result')
/** @type {{ busy: boolean, waitingFor: string | null, showLast: () => void, typed: Record<string, string> }} */
const trying = { busy: false, waitingFor: null, showLast: () => {}, typed: { SMS: '', EMAIL: '' } }

/** @param {string} name */
const field = (name) => /** @type {HTMLInputElement} */ (form.elements.namedItem(name))
const channel = () => String(new FormData(form).get('channel'))
const keyIsShown = () => field('apiKey').type === 'text'

const demoSettings = () => {
  const content = document.querySelector('meta[name="otpost-demo"]')?.getAttribute('content') ?? ''
  return asRecord(attempt(() => JSON.parse(content)))
}

/** @param {string} path @returns {Record<string, string>} */
const bodyFor = (path) => {
  /** @param {string} name */
  const typed = (name) => field(name).value.trim()
  const app = { appId: typed('appId'), apiKey: typed('apiKey'), brandId: typed('brandId') }
  /** @type {Record<string, string>} */
  const contact = channel() === 'SMS' ? { phone: typed('recipient') } : { email: typed('recipient') }
  return path === '/otp/verify'
    ? { ...app, ...contact, otp: typed('otp') }
    : { ...app, channel: channel(), ...contact }
}

/** @param {string} path @param {Record<string, string>} body @param {boolean} showKey */
const curlLine = (path, body, showKey) => {
  const json = JSON.stringify(showKey ? body : { ...body, apiKey: '$API_KEY' }).replaceAll("'", `'\\''`)
  // The variable stands outside the single quotes, so that the shell fills it in.
  const data = showKey ? json : json.replace('"apiKey":"$API_KEY"', () => `"apiKey":"'"$API_KEY"'"`)
  return `curl -i ${location.origin}${path} -H 'content-type: application/json' -d '${data}'`
}

const firstCurl = () => {
  const body = bodyFor('/otp/send')
  body.appId ||= 'APPID'
  body.brandId ||= 'BRAND'
  if (body.phone === '') body.phone = '+1 202 555 0143'
  if (body.email === '') body.email = 'ada@example.com'
  // A demo key is no secret, and the line has to work as it stands.
  return curlLine('/otp/send', body, body.apiKey !== '' && body.apiKey === demoSettings().apiKey)
}

/** @param {string} retryAfter a number of seconds or a date */
const waitInWords = (retryAfter) => {
  const seconds = Math.ceil(Number(retryAfter) || (Date.parse(retryAfter) - Date.now()) / 1_000)
  if (Number.isNaN(seconds)) return `Retry-After: ${retryAfter}`
  const [unit, size] = seconds < 120 ? ['second', 1] : seconds < 7_200 ? ['minute', 60] : ['hour', 3_600]
  const until = preciseClock.format(Date.now() + seconds * 1_000)
  return `Retry-After ${retryAfter}: again in ${plural(Math.ceil(seconds / Number(size)), String(unit))}, at ${until}`
}

/** @param {string} path @param {Record<string, string>} body @returns {Promise<Answer>} */
const post = async (path, body) => {
  const started = performance.now()
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(path, { method: 'POST', headers, body: JSON.stringify(body) })
  const text = await response.text()
  const line = `${response.status} ${response.statusText}`.trim()
  const took = `${Math.round(performance.now() - started)} ms`
  const answer = {
    status: response.status,
    line: `${line} · ${took}`,
    retryAfter: response.headers.get('retry-after'),
  }
  const json = attempt(() => JSON.parse(text))
  return { ...answer, json: asRecord(json), body: json === null ? text : JSON.stringify(json, null, 2) }
}

/** @param {string} path @param {Record<string, string>} body @param {Answer} answer */
const showAnswer = (path, body, { status, line, json, body: text, retryAfter }) => {
  const good = status >= 200 && status < 300
  const code = asText(json.error)
  const said = asText(json.message) ?? (good ? 'Done' : 'The request failed')
  const title = good && path === '/otp/verify' ? 'Verified' : said
  const piece = make('answer', {
    title,
    status: [`POST ${path}`, line].join(' · '),
    error: code,
    hint: HINTS.get(code ?? '') ?? (title === said ? null : said),
    retry: retryAfter === null ? null : waitInWords(retryAfter),
    json: text === '' ? null : snippet('JSON', text),
    curl: snippet('curl', curlLine(path, body, keyIsShown())),
  })
  setIcon(piece, good ? 'check' : 'alert')
  result.dataset.tone = good ? 'good' : 'bad'
  result.hidden = false
  result.replaceChildren(piece)
}

/** @param {string | null} text @param {string | null} [code] */
const setArrival = (text, code = null) => {
  find('#arrival').hidden = text === null
  find('#arrival-text').replaceChildren(marked(text ?? '', code))
  find('#use-code').hidden = code === null
  find('#use-code').dataset.code = code ?? ''
}

/** @param {Message} message */
const offerCode = ({ requestId, to, code }) => {
  const awaited = requestId !== null && requestId === trying.waitingFor
  if (awaited) {
    trying.waitingFor = null
    location.hash = `to=${encodeURIComponent(to)}`
  }
  if (code && (awaited || to === recipientKey(field('recipient').value))) setArrival(`${code} arrived`, code)
}

/** The message may come in before the answer of the call that sent it, or after. @param {string | null} requestId */
const awaitMessage = (requestId) => {
  trying.waitingFor = requestId
  field('otp').value = ''
  setArrival('Waiting for the message…')
  const here = [...messages.values()].find((message) => requestId !== null && message.requestId === requestId)
  if (here) offerCode(here)
  setTimeout(() => {
    const text = 'Nothing has come in yet. Does this channel go to the outbox?'
    if (requestId !== null && trying.waitingFor === requestId) setArrival(text)
  }, 8_000)
}

const stopWaiting = () => {
  trying.waitingFor = null
  if (find('#use-code').hidden) setArrival(null)
}

/** @param {'/otp/send' | '/otp/resend' | '/otp/verify'} path */
const call = async (path) => {
  if (trying.busy) return
  if (path !== '/otp/verify') stopWaiting()
  const setBusy = (/** @type {boolean} */ busy) => {
    trying.busy = busy
    for (const id of ['#send', '#resend', '#verify']) find(id).setAttribute('aria-disabled', String(busy))
  }
  setBusy(true)
  const body = bodyFor(path)
  const message = 'No answer: the service cannot be reached'
  /** @type {Answer} */
  const unreachable = { status: 0, line: 'no answer', json: { message }, body: '', retryAfter: null }
  const answer = await post(path, body).catch(() => unreachable)
  setBusy(false)
  trying.showLast = () => showAnswer(path, body, answer)
  trying.showLast()
  announce(`${find('h3', result).textContent}, ${answer.line}`)
  if (answer.status === 200 && path === '/otp/verify') setArrival(null)
  else if (answer.status === 200) awaitMessage(asText(answer.json.requestId))
  else if (answer.json.error === 'sms_failed') setArrival(null)
}

const showChannel = () => {
  const sms = channel() === 'SMS'
  find('#recipient-label').textContent = sms ? 'Phone' : 'E-mail'
  field('recipient').type = sms ? 'tel' : 'email'
  field('recipient').value = trying.typed[channel()] ?? ''
  setArrival(null)
}

const prefill = () => {
  const demo = demoSettings()
  const isDemo = asText(demo.apiKey) !== null
  const stored = asRecord(attempt(() => JSON.parse(sessionStorage.getItem('otpost-try') ?? '{}')))
  if (isDemo) trying.typed = { SMS: '+1 202 555 0143', EMAIL: 'ada@example.com' }
  Object.assign(trying.typed, asRecord(stored.typed))
  // The demo's app and key belong together, so a remembered app must not replace one of them.
  for (const name of ['appId', 'brandId'])
    field(name).value = asText(isDemo ? demo[name] : stored[name]) ?? ''
  field('apiKey').value = asText(demo.apiKey) ?? ''
  find('#explain').hidden = isDemo
  const email = /** @type {HTMLInputElement} */ (find('#try [value="EMAIL"]'))
  email.checked = stored.channel === 'EMAIL'
  showChannel()
}

/** Everything but the key and the code. */
const remember = () => {
  trying.typed[channel()] = field('recipient').value
  const [appId, brandId] = [field('appId').value, field('brandId').value]
  const json = JSON.stringify({ appId, brandId, channel: channel(), typed: trying.typed })
  attempt(() => sessionStorage.setItem('otpost-try', json))
  if (!selected()) renderConversation()
}

const toggleKey = () => {
  const show = !keyIsShown()
  field('apiKey').type = show ? 'text' : 'password'
  find('#show-key').textContent = show ? 'Hide' : 'Show'
  find('#show-key').setAttribute('aria-pressed', String(show))
  trying.showLast()
}

const useCode = () => {
  field('otp').value = find('#use-code').dataset.code ?? ''
  find('#verify').focus()
}

const goBack = () => {
  const left = items.get(state.selected ?? '')
  history.pushState(null, '', location.pathname)
  choose()
  left?.querySelector('button')?.focus()
}

const followLink = () => {
  const fromList = list.contains(document.activeElement)
  choose()
  // On a small screen the list has just gone, and the focus with it.
  if (fromList && !wide.matches) find('#back').focus()
}

list.addEventListener('click', ({ target }) => {
  const to = target instanceof Element ? target.closest('button')?.dataset.to : undefined
  if (to) location.hash = `to=${encodeURIComponent(to)}`
})
list.addEventListener('keydown', moveInList)
filter.addEventListener('input', renderRecipients)
stage.addEventListener('click', pressedInStage)
stage.addEventListener('keydown', moveInTabs)
document.addEventListener('click', ({ target }) => {
  const button = target instanceof Element ? target.closest('button') : null
  if (button?.dataset.copy) copy(button)
})
find('#back').addEventListener('click', goBack)
find('#resend').addEventListener('click', () => call('/otp/resend'))
find('#verify').addEventListener('click', () => call('/otp/verify'))
find('#use-code').addEventListener('click', useCode)
find('#show-key').addEventListener('click', toggleKey)
form.addEventListener('submit', (event) => {
  event.preventDefault()
  call('/otp/send')
})
field('otp').addEventListener('keydown', (event) => {
  if (event.key !== 'Enter') return
  event.preventDefault()
  call('/otp/verify')
})
form.addEventListener('change', ({ target }) => {
  if (target instanceof HTMLInputElement && target.name === 'channel') showChannel()
  remember()
})
form.addEventListener('input', ({ target }) => {
  if (target instanceof HTMLInputElement && target.name !== 'channel') remember()
})
wide.addEventListener('change', choose)
addEventListener('hashchange', followLink)
addEventListener('popstate', followLink)
addEventListener('pagehide', () => leaving.abort())
addEventListener('pageshow', ({ persisted }) => {
  if (persisted) startListening()
})

prefill()
startListening()
