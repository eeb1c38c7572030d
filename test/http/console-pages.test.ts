import { describe, expect, test } from 'bun:test'
import { type KeyModel, keyPage } from '../../src/adapters/console/apps/key.tsx'
import { type AppsModel, appScopePage, appsPage } from '../../src/adapters/console/apps/page.tsx'
import { type BrandModel, brandPage, brandsPage } from '../../src/adapters/console/brands/page.tsx'
import { formOf } from '../../src/adapters/console/brands/routes.ts'
import { callsPage, deliveriesPage, type LogModel } from '../../src/adapters/console/deliveries/log.tsx'
import { type TraceModel, tracePage } from '../../src/adapters/console/deliveries/page.tsx'
import { destinationsPage } from '../../src/adapters/console/destinations/page.tsx'
import { guardPage } from '../../src/adapters/console/guard/page.tsx'
import { moneyPage } from '../../src/adapters/console/money/page.tsx'
import type { PageContext } from '../../src/adapters/console/page-context.ts'
import {
  type RequestMailModel,
  type RequestModel,
  type RequestsModel,
  requestPage,
  requestsPage,
} from '../../src/adapters/console/requests/page.tsx'
import { testPage } from '../../src/adapters/console/test-send/page.tsx'
import { previewFragment } from '../../src/adapters/console/texts/messages.tsx'
import { textPage, textsPage } from '../../src/adapters/console/texts/page.tsx'
import { webhookPage, webhookSecretPage } from '../../src/adapters/console/webhooks/page.tsx'
import { textBeforeCode } from '../../src/adapters/email/code-in-html.ts'
import { segmentsOf } from '../../src/adapters/sms/segments.ts'
import { isTopLevelDomain } from '../../src/adapters/sms/top-level-domains.ts'
import type { Delivery } from '../../src/domain/delivery/delivery-reports.ts'
import type { AuthoredRule } from '../../src/domain/delivery/destination.ts'
import type { PrefixStatus } from '../../src/domain/guard/status.ts'
import type { IntegrationRequestRecord } from '../../src/domain/integration/integration.ts'
import { unscoped } from '../../src/domain/limits/scope.ts'
import { explain } from '../../src/domain/log/explain.ts'
import { budgetStatus } from '../../src/domain/money/budgets.ts'
import { freshBrand } from '../../src/domain/operator/brands.ts'
import type { RequestTrace } from '../../src/domain/request/request-trace.ts'
import type { BrandWithTexts } from '../../src/domain/texts/brand.ts'
import { draftPreview } from '../../src/domain/texts/drafts.ts'
import { previewOf, previewsOf } from '../../src/domain/texts/preview.ts'
import { templateOf } from '../../src/domain/texts/templates.ts'

/** Text that, unescaped, breaks out of an element, a quoted attribute or a comment. */
const hostile = `--></title></textarea><script>alert(1)</script>"'><img src=x onerror="alert(2)" style="color:red">`

const now = Date.UTC(2026, 0, 1, 12)

/** The elements of a page with their attributes, and its text, as HTMLRewriter parses them. */
async function read(html: string) {
  const elements: { tag: string; attributes: ReadonlyMap<string, string> }[] = []
  let text = ''
  const rewriter = new HTMLRewriter().on('*', {
    element(element) {
      const attributes = new Map([...element.attributes].map(([name, value]) => [name, unescaped(value)]))
      elements.push({ tag: element.tagName, attributes })
    },
    text(chunk) {
      text += chunk.text
    },
  })
  await rewriter.transform(new Response(html)).text()
  const all = (tag: string) =>
    elements.filter((element) => element.tag === tag).map((each) => each.attributes)
  return { elements, all, text: unescaped(text) }
}

function unescaped(text: string): string {
  const signs: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', '#39': "'", amp: '&' }
  return text.replace(/&(lt|gt|quot|#39|amp);/g, (whole, name) => signs[name] ?? whole)
}

/** Checks for markup that the content security policy forbids and pages do not need. */
async function expectInert(html: string): Promise<void> {
  const { elements, all } = await read(html)
  expect(elements.length).toBeGreaterThan(0)
  const handlers = elements.flatMap(({ attributes }) =>
    [...attributes.keys()].filter((name) => name === 'style' || name.startsWith('on') || name === 'srcdoc'),
  )
  expect(handlers).toEqual([])
  const foreign = ['style', 'img', 'iframe', 'object', 'embed', 'base'].flatMap(all)
  expect(foreign).toEqual([])
  for (const script of all('script')) {
    expect([script.get('type'), script.get('src')]).toEqual(['module', expect.stringMatching(/^\/admin\//)])
  }
  expect(html).not.toMatch(/<script[^>]*>[^<]/)
  for (const link of all('a')) {
    expect(link.get('href')).toMatch(/^(\/[a-z]|#|https?:\/\/|mailto:)/)
    if (link.get('href')?.startsWith('http')) expect(link.get('rel')).toContain('noopener')
  }
  for (const form of all('form')) {
    const own = [expect.stringMatching(/^(post|get)$/), expect.stringMatching(/^\/admin\//)]
    expect([form.get('method'), form.get('action')]).toEqual(own)
  }
}

const pageContext: PageContext = {
  version: '1.2.3',
  csrfToken: 'the-token-of-this-session',
  person: { email: 'ana@example.com', role: 'owner', isSetUp: true },
  pendingRequests: 2,
  hasOutbox: true,
  reviewNumbers: 0,
  now,
  flash: null,
}

describe('the pages for requests, brands, apps and deliveries', () => {
  const kept: IntegrationRequestRecord = {
    id: '0a3f6a52-6f0c-4d7e-9d39-0f6a2f0a9a01',
    createdAt: now - 60_000,
    companyName: 'Globex',
    contactName: 'Ada',
    contactEmail: 'ada@globex.example',
    brandName: 'Globex Shop',
    channels: ['SMS', 'EMAIL'],
    website: 'https://globex.example/',
    useCase: 'Logging in.',
    status: 'pending',
    decidedAt: null,
    decidedBy: null,
    reason: null,
    appId: null,
    brandSlug: null,
  }
  const request: RequestModel = {
    request: kept,
    appId: 'globex-shop',
    brandSlug: 'globex',
    reason: '',
    mails: {
      approved: { subject: 'Approved', text: 'Hello', isChosen: true },
      rejected: { subject: 'Rejected', text: 'Hello', isChosen: false },
    },
    mailerName: 'smtp',
    problem: null,
    mail: null,
  }
  const requests: RequestsModel = {
    pending: [kept],
    decided: [],
    origin: 'https://otp.example.com',
    isLater: false,
    next: null,
  }
  const brand: BrandWithTexts = {
    ...freshBrand('acme'),
    displayName: 'Acme',
    notifyTemplates: ['ORDER_PLACED'],
    dltEnabled: true,
    loginIdEnabled: true,
    registrations: { LOGIN_OTP: { id: '1107', ids: { msg91: '64f0' }, senderId: 'ACMEIN', maxLength: null } },
  }
  const settings = { segmentsOf, isTopLevelDomain, textBeforeCode, otpTtlSeconds: 300 }

  function brandModel(of: BrandWithTexts, change: Partial<BrandModel> = {}): BrandModel {
    return {
      brand: of,
      form: formOf(of),
      problems: [],
      was: '{}',
      nextStatuses: ['suspended'],
      previews: previewsOf(of, settings),
      providers: ['twilio', 'msg91'],
      ...change,
    }
  }
  const key: KeyModel = {
    appId: 'shop',
    apiKey: 'otp_The-One-And-Only-Key_0123456789',
    brandSlug: 'acme',
    brandId: 'acme',
    hasOther: false,
    origin: 'https://otp.example.com',
    mail: null,
  }
  const appKey = { lastFour: '7f3a', createdAt: now - 9_000_000, revokedAt: null, lastUsedAt: now - 120_000 }
  const apps: AppsModel = {
    apps: [{ appId: 'shop', createdAt: now - 9_000_000, revokedAt: null, keys: [appKey] }],
    configured: ['legacy'],
    scopeOf: unscoped,
    webhookOf: () => undefined,
    revokerOf: () => undefined,
    appId: '',
    scope: {
      form: { anyBrand: true, brands: [], operations: ['otp', 'notify'], perMinute: '' },
      was: '{}',
      brands: [brand],
    },
    problem: null,
  }
  const requestId = '3f2a9c10-6f0c-4d7e-9d39-0f6a2f0a9a01'
  const delivery: Delivery = {
    requestId,
    app: 'shop',
    brand: 'acme',
    attempt: 1,
    at: now - 60_000,
    channel: 'SMS',
    route: 'plain',
    lang: 'en',
    provider: 'twilio',
    template: 'LOGIN_OTP',
    recipient: '12*******43',
    position: null,
    recipientSubject: 'hash-of-a-recipient',
    segments: { count: 1, encoding: 'GSM-7' },
    country: 'US',
    outcome: 'accepted',
    errorClass: null,
    reason: null,
    providerMessageId: 'SM42',
    reportKey: 'twilio:SM42',
    durationMs: 412,
    report: null,
  }
  const hostileFilters = {
    recipientSubjects: [hostile],
    provider: hostile,
    app: hostile,
    brand: hostile,
    template: hostile,
    lang: hostile,
    country: hostile,
  }
  const known = {
    provider: ['twilio'],
    app: ['shop'],
    brand: ['acme'],
    template: ['LOGIN_OTP'],
    lang: ['en', 'hi'],
    country: ['GB'],
  }
  const deliveries: LogModel<Delivery> = {
    filters: {},
    unknown: [],
    total: null,
    masked: null,
    found: { rows: [delivery], next: null },
    searchedTo: null,
    isLater: false,
    known,
  }
  const trace: RequestTrace = {
    requestId,
    at: now - 61_000,
    operation: 'send',
    app: 'shop',
    brand: 'acme',
    channel: 'SMS',
    recipient: '12*******43',
    recipients: null,
    recipientSubject: 'hash-of-a-recipient',
    country: 'US',
    reference: 'order 17',
    unknownFields: [],
    flags: ['destination'],
    limits: [
      { limit: 'cooldown', max: 1, used: 1, endsAt: now, refused: false },
      { limit: 'app-minute', max: 10, used: 4, endsAt: now, refused: false },
    ],
    end: { status: 200, error: null, message: null, durationMs: 1200 },
  }

  function traceModel(change: Partial<RequestTrace>, rows: readonly Delivery[]): TraceModel {
    const changed = { ...trace, ...change }
    return {
      trace: changed,
      deliveries: rows,
      lines: explain(changed, rows),
      blockers: [],
      blockedPrefixes: [],
    }
  }

  const hostileRequest: IntegrationRequestRecord = {
    ...kept,
    id: hostile,
    companyName: hostile,
    contactName: hostile,
    contactEmail: hostile,
    brandName: hostile,
    website: `javascript:${hostile}`,
    useCase: hostile,
  }
  const hostileMail = { subject: hostile, text: hostile }
  const hostileMailModel: RequestMailModel = {
    ...hostileMail,
    request: hostileRequest,
    mailerName: 'outbox',
    last: {
      id: 1,
      at: now,
      actor: { by: 'command', name: hostile },
      action: 'request.mail-failed',
      target: hostile,
      details: { reason: hostile },
    },
    problem: hostile,
  }
  const hostileBrand: BrandWithTexts = {
    ...brand,
    slug: hostile,
    displayName: hostile,
    domain: hostile,
    entityId: hostile,
    lang: hostile,
    androidHash: hostile,
    logoUrl: hostile,
    color: hostile,
    dltAllowList: [hostile],
    notifyTemplates: [hostile],
    registrations: {
      LOGIN_OTP: { id: hostile, ids: { [hostile]: hostile }, senderId: hostile, maxLength: null },
    },
  }
  const hostileText = {
    templateKey: hostile,
    channel: 'SMS' as const,
    lang: hostile,
    subject: hostile,
    text: hostile,
    html: hostile,
    version: 1,
    updatedAt: now,
  }
  const hostileRule: AuthoredRule = {
    rule: `+${hostile}`,
    brandSlug: hostile,
    action: 'monitor',
    providers: [hostile],
    sender: hostile,
    route: 'plain',
    source: 'stored',
    set: { id: 1, at: now, actor: { by: 'command', name: hostile } },
  }
  const hostilePrefix: PrefixStatus = {
    prefix: `+${hostile}`,
    country: null,
    by: 'operator',
    since: '2026-01-01T11:00:00.000Z',
    until: '2026-01-01T23:00:00.000Z',
    unverified: null,
  }
  const hostileKey = { ...appKey, lastFour: hostile }
  const hostileDelivery: Delivery = {
    ...delivery,
    requestId: hostile,
    app: hostile,
    brand: hostile,
    provider: hostile,
    template: hostile,
    recipient: hostile,
    recipientSubject: hostile,
    outcome: 'unknown',
    errorClass: 'content',
    reason: hostile,
    providerMessageId: hostile,
    report: { status: 'failed', reason: hostile, at: now },
  }
  const hostileScope = {
    form: { anyBrand: false, brands: [hostile], operations: [hostile], perMinute: hostile },
    was: hostile,
    brands: [hostileBrand],
  }
  const hostilePages: readonly (readonly [string, (pageContext: PageContext) => string])[] = [
    [
      'requests',
      (around) =>
        requestsPage(around, {
          ...requests,
          pending: [hostileRequest],
          decided: [
            { ...hostileRequest, status: 'rejected', decidedAt: now, decidedBy: hostile, reason: hostile },
            {
              ...hostileRequest,
              status: 'approved',
              decidedAt: now,
              decidedBy: hostile,
              appId: hostile,
              brandSlug: hostile,
            },
          ],
        }),
    ],
    [
      'no requests',
      (around) =>
        requestsPage(around, { pending: [], decided: [], origin: hostile, isLater: false, next: null }),
    ],
    [
      'texts',
      (around) =>
        textsPage(around, {
          brand: hostileBrand,
          rows: [{ ...hostileText, own: hostileText, actor: { by: 'console', name: hostile } }],
          form: { template: hostile, lang: hostile },
          problem: hostile,
        }),
    ],
    ...[false, true].map((isNewTemplate): (typeof hostilePages)[number] => [
      isNewTemplate ? 'a new template' : 'a text',
      (around) =>
        textPage(around, {
          brand: hostileBrand,
          isNewTemplate,
          form: { ...hostileText, variables: hostile },
          own: hostileText,
          builtIn: isNewTemplate ? null : hostileText,
          placeholders: [hostile],
          preview: draftPreview(
            { ...hostileBrand, slug: 'acme' },
            {
              ...hostileText,
              templateKey: 'LOGIN_OTP',
              lang: 'en',
              subject: '',
              html: '',
              text: `{{otp}}${hostile}`,
              variables: [],
            },
            {},
            settings,
          ),
          history: [
            {
              id: 1,
              at: now,
              actor: { by: 'command', name: hostile },
              action: 'text.set',
              target: hostile,
              details: { version: hostile, text: hostile },
            },
          ],
          providers: [hostile],
          problems: [hostile],
        }),
    ]),
    [
      'a test message',
      (around) =>
        testPage(around, {
          form: { to: hostile, provider: hostile, brand: hostile, template: hostile, lang: hostile },
          providers: [{ name: hostile, channel: 'SMS' }],
          brands: [{ slug: hostile, displayName: hostile }],
          templates: [hostile],
          problem: hostile,
        }),
    ],
    [
      'a request',
      (around) =>
        requestPage(around, {
          request: hostileRequest,
          appId: hostile,
          brandSlug: hostile,
          reason: hostile,
          mails: {
            approved: { ...hostileMail, isChosen: true },
            rejected: { ...hostileMail, isChosen: true },
          },
          mailerName: hostile,
          problem: hostile,
          mail: null,
        }),
    ],
    [
      'a decided request',
      (around) =>
        requestPage(around, {
          ...request,
          request: {
            ...hostileRequest,
            status: 'rejected',
            decidedAt: now,
            decidedBy: hostile,
            reason: hostile,
          },
          mail: hostileMailModel,
        }),
    ],
    [
      'a key',
      (around) =>
        keyPage(around, {
          appId: hostile,
          apiKey: hostile,
          brandSlug: hostile,
          brandId: hostile,
          hasOther: true,
          origin: hostile,
          mail: hostileMailModel,
        }),
    ],
    [
      'destinations',
      (around) =>
        destinationsPage(around, {
          rules: [hostileRule],
          countries: [{ country: 'GB', sent: 3, verified: 1 }],
          brands: [hostile],
          providers: [hostile],
          hasTemplateRoute: true,
          form: { ...hostileRule, brand: hostile, sender: hostile, route: 'plain', isGroup: true },
          problems: [hostile],
          check: {
            number: hostile,
            brand: hostile,
            problem: hostile,
            result: {
              digits: '447400123456',
              formatted: hostile,
              guard: null,
              country: 'GB',
              kind: 'ordinary',
              decision: { action: 'monitor', rule: hostileRule, reason: 'rule' },
            },
          },
        }),
    ],
    [
      'guard',
      (around) =>
        guardPage(around, {
          status: {
            mode: 'record',
            blocked: [{ ...hostilePrefix, by: 'guard', unverified: 5 }],
            allowed: [hostilePrefix],
            buckets: [{ kind: 'prefix', key: hostile, level: 5, threshold: 5 }],
            pumping: [
              {
                country: 'LV',
                sent: 6,
                verified: 0,
                denied: 1,
                recorded: 2,
                recordedLately: 2,
                deniedLately: 0,
                hasBlock: false,
                prefixes: [{ prefix: `+${hostile}`, share: 1, isBlocked: false }],
                apps: [{ app: hostile, brand: hostile, codes: 3 }],
              },
            ],
            countries: [{ country: 'LV', sent: 6, verified: 7, conversion: 7 / 6, denied: 1, recorded: 2 }],
            lastHour: { denied: 1, recorded: 2 },
            last24Hours: { denied: 1, recorded: 2 },
          },
          requests: [{ ...trace, recipient: hostile, flags: ['country-hour'] }],
          changes: [
            {
              id: 1,
              at: now,
              actor: { by: 'console', name: hostile },
              action: 'guard.set',
              target: `+${hostile}`,
              details: {},
            },
          ],
          form: { prefix: hostile, action: hostile, duration: hostile },
          problem: hostile,
          formatPrefix: (digits) => digits,
        }),
    ],
    [
      'money',
      (around) =>
        moneyPage(around, {
          budgets: [
            budgetStatus(
              {
                scope: `app:${hostile}`,
                period: 'day',
                amountMicros: 1_000_000,
                currency: 'EUR',
                alertAt: [],
                stops: true,
                liftedUntil: now + 1,
                countsFrom: 0,
              },
              1_000_000,
              now,
            ),
          ],
          currency: 'EUR',
          isBuiltIn: false,
          period: 'this-month',
          span: { from: now, until: now },
          spending: [
            {
              at: now,
              micros: 75_000,
              currency: 'EUR',
              country: null,
              app: hostile,
              brand: hostile,
              provider: '',
            },
          ],
          alerts: [{ key: hostile, at: now, kind: hostile, title: hostile, text: hostile }],
          form: { scope: hostile, period: 'day', amount: hostile, alertAt: hostile, stops: true },
          problem: hostile,
        }),
    ],
    ['brands', (around) => brandsPage(around, [hostileBrand])],
    [
      'a brand',
      (around) =>
        brandPage(
          around,
          brandModel(hostileBrand, {
            problems: [hostile],
            providers: [hostile],
            previews: previewsOf(hostileBrand, settings).map((preview) =>
              preview.audience === 'otp'
                ? { ...preview, problem: hostile, text: null }
                : previewOf(
                    hostileBrand,
                    templateNamed(preview.templateKey),
                    { customerName: hostile },
                    settings,
                  ),
            ),
          }),
        ),
    ],
    [
      'a new brand',
      (around) => brandPage(around, { ...brandModel(hostileBrand), brand: null, problems: [hostile] }),
    ],
    [
      'apps',
      (around) =>
        appsPage(around, {
          apps: [
            { appId: hostile, createdAt: now, revokedAt: null, keys: [hostileKey, hostileKey] },
            {
              appId: `${hostile}2`,
              createdAt: now,
              revokedAt: now,
              keys: [{ ...hostileKey, revokedAt: now }],
            },
          ],
          configured: [hostile],
          scopeOf: (appId) => ({ ...unscoped(appId), brands: [hostile] }),
          webhookOf: () => undefined,
          revokerOf: () => hostile,
          appId: hostile,
          scope: hostileScope,
          problem: hostile,
        }),
    ],
    [
      'the scope of an app',
      (around) => appScopePage(around, { appId: hostile, scope: hostileScope, problem: hostile }),
    ],
    [
      'the webhook of an app',
      (around) =>
        webhookPage(around, {
          appId: hostile,
          webhook: {
            appId: hostile,
            url: hostile,
            secret: 'whsec_secret',
            previousSecrets: [],
            eventTypes: [],
            createdAt: now,
            disabledAt: now,
          },
          form: { url: hostile, eventTypes: [hostile] },
          events: (['waiting', 'delivered', 'failed'] as const).map((state) => ({
            id: hostile,
            at: now,
            type: 'message.failed',
            requestId: hostile,
            reportKey: null,
            position: null,
            status: 'failed',
            reason: hostile,
            state,
            appId: hostile,
            brand: hostile,
            channel: 'SMS',
            recipient: hostile,
            reference: hostile,
            tries: 2,
            dueAt: now + 5000,
            triedAt: now,
            httpStatus: 500,
            error: hostile,
            endedAt: state === 'waiting' ? null : now,
          })),
          problem: hostile,
        }),
    ],
    ['the secret of a webhook', (around) => webhookSecretPage(around, { appId: hostile, secret: hostile })],
    [
      'deliveries',
      (around) =>
        deliveriesPage(around, {
          ...deliveries,
          filters: hostileFilters,
          masked: hostile,
          found: { rows: [hostileDelivery], next: { requestId: hostile, attempt: 1, at: now } },
          isLater: true,
          known: {
            ...known,
            provider: [hostile],
            app: [hostile],
            brand: [hostile],
            template: [hostile],
            lang: [hostile],
          },
        }),
    ],
    [
      'no deliveries',
      (around) =>
        deliveriesPage(around, {
          ...deliveries,
          found: { rows: [], next: null },
          filters: { requestId: hostile },
        }),
    ],
    [
      'API calls',
      (around) =>
        callsPage(around, {
          ...deliveries,
          filters: hostileFilters,
          unknown: [`result=${hostile}`],
          found: {
            rows: [
              {
                ...trace,
                app: hostile,
                brand: hostile,
                recipient: hostile,
                recipientSubject: hostile,
                deliveries: [hostileDelivery],
              },
            ],
            next: null,
          },
        }),
    ],
    [
      'a story',
      (around) =>
        tracePage(
          around,
          traceModel(
            {
              requestId: hostile,
              app: hostile,
              brand: hostile,
              recipient: hostile,
              end: { status: 400, error: hostile, message: hostile, durationMs: 3 },
            },
            [hostileDelivery],
          ),
        ),
    ],
  ]

  function templateNamed(templateKey: string) {
    const template = templateOf(templateKey)
    if (!template) throw new Error(`there is no ${templateKey}`)
    return template
  }

  for (const [name, page] of hostilePages) {
    test(`show hostile text as text: ${name}`, async () => {
      const html = page({ ...pageContext, flash: { tone: 'bad', text: hostile } })
      await expectInert(html)
      const { text } = await read(html)
      // The flash message shows the text; no page may create an element from it.
      expect(text).toContain(hostile)
    })
  }

  test('show a hostile preview as text', async () => {
    const named = previewOf({ ...brand, displayName: hostile }, templateNamed('ORDER_PLACED'), {}, settings)
    const refused = previewOf(brand, templateNamed('ORDER_PLACED'), { customerName: hostile }, settings)
    for (const preview of [named, { ...refused, problem: hostile }]) {
      const html = previewFragment(preview)
      await expectInert(html)
      expect((await read(html)).text).toContain(hostile)
    }
  })

  test('have a CSRF token in every form that changes something', async () => {
    const pages = [
      ...hostilePages.map(([, page]) => page(pageContext)),
      appsPage(pageContext, apps),
      brandPage(pageContext, brandModel(brand)),
      requestPage(pageContext, request),
    ]
    for (const html of pages) {
      const forms = html.split('<form method="post"').slice(1)
      expect(forms.length).toBeGreaterThan(0)
      const without = forms.filter((form) => {
        const [own = ''] = form.split('</form>')
        return !own.includes('<input type="hidden" name="csrf" value="the-token-of-this-session"')
      })
      expect(without).toEqual([])
    }
  })

  test('have a label for every control, and no duplicate ids', async () => {
    for (const [, page] of hostilePages) {
      const { elements, all } = await read(page(pageContext))
      const ids = elements.flatMap(({ attributes }) => attributes.get('id') ?? [])
      const inputs = all('input').filter((each) => each.get('type') !== 'hidden')
      const visible = [...inputs, ...all('textarea'), ...all('select')]
      const labelled = new Set(all('label').map((label) => label.get('for')))
      expect(visible.filter((each) => !labelled.has(each.get('id')))).toEqual([])
      expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([])
    }
  })

  /** The text of a page, with white space collapsed. */
  async function words(html: string): Promise<string> {
    return (await read(html)).text.replace(/\s+/g, ' ')
  }

  /** The fields that each form posts unchanged, by action, without `csrf`. */
  async function forms(html: string): Promise<readonly (readonly [string, Record<string, string>])[]> {
    const all: [string, Record<string, string>][] = []
    const add = (name: string | null, value: string | null) => {
      const fields = all.at(-1)?.[1]
      if (fields && name && name !== 'csrf') fields[unescaped(name)] = unescaped(value ?? '')
    }
    await new HTMLRewriter()
      .on('form', { element: (form) => void all.push([form.getAttribute('action') ?? '', {}]) })
      .on('form input:not([type=checkbox]), form button, form [type=checkbox][checked]', {
        element: (control) => add(control.getAttribute('name'), control.getAttribute('value')),
      })
      .transform(new Response(html))
      .text()
    return all.filter(([action]) => !['/admin/logout', '/admin/search'].includes(action))
  }

  test('show a pending request with forms to approve and reject it, then the decision', async () => {
    const path = `/admin/requests/${kept.id}`
    expect(await forms(requestPage(pageContext, request))).toEqual([
      [`${path}/approve`, { appId: 'globex-shop', brandSlug: 'globex', mail: '1', subject: 'Approved' }],
      [`${path}/reject`, { subject: 'Rejected' }],
    ])
    const decided: IntegrationRequestRecord = {
      ...kept,
      status: 'approved',
      decidedAt: now,
      decidedBy: 'ada',
      appId: 'globex-web',
      brandSlug: 'globex',
    }
    const page = requestPage(pageContext, { ...request, request: decided })
    expect(await forms(page)).toEqual([])
    expect(await words(page)).toContain('brand globex, app globex-web')
    const list = requestsPage(pageContext, { ...requests, pending: [], decided: [decided] })
    expect((await read(list)).all('a').map((link) => link.get('href'))).toContain(path)
    expect(await words(list)).toContain('No pending requests')
    expect(await words(list)).toContain('https://otp.example.com/integrations/requests')
  })

  test("link a requester's website only if it is http or https, and a mailto link has one recipient", async () => {
    const linksOf = async (change: Partial<IntegrationRequestRecord>) => {
      const { all } = await read(requestPage(pageContext, { ...request, request: { ...kept, ...change } }))
      return all('a').flatMap((link) => link.get('href') ?? [])
    }
    expect(await linksOf({ website: 'https://globex.example/' })).toContain('https://globex.example/')
    expect((await linksOf({ website: 'javascript:alert(1)' })).join(' ')).not.toContain('javascript')
    const mail = (await linksOf({ contactEmail: 'a?bcc=b@globex.example&c=%41' })).find((href) =>
      href.startsWith('mailto:'),
    )
    expect(mail).toBe('mailto:a%3Fbcc%3Db@globex.example%26c%3D%2541')
  })

  test('show a new key with a curl command that works for any app id', async () => {
    const page = keyPage(pageContext, { ...key, appId: `it's "$HOME" \`id\` \\` })
    expect(await words(page)).toContain('This key is shown only once.')
    const { all } = await read(page)
    expect(all('button').map((button) => button.get('data-copy'))).toContain(key.apiKey)
    const line = unescaped(/<pre>(.*?)<\/pre>/s.exec(page)?.[1] ?? '')
    // The shell itself reports which arguments curl gets.
    const shown = Bun.spawn(['sh', '-c', `curl() { printf '%s\\0' "$@"; }\n${line}`], { stdout: 'pipe' })
    const given = (await new Response(shown.stdout).text()).split('\0').slice(0, -1)
    expect(given.slice(0, -1)).toEqual([
      '-s',
      'https://otp.example.com/otp/send',
      '-H',
      'content-type: application/json',
      '-d',
    ])
    expect(JSON.parse(given.at(-1) ?? '')).toEqual({
      appId: `it's "$HOME" \`id\` \\`,
      apiKey: key.apiKey,
      brandId: 'acme',
      phone: '+1 202 555 0143',
    })
  })

  test('explain the key change when the app has a second key', async () => {
    expect(await words(keyPage(pageContext, key))).not.toContain('previous key')
    const second = await words(
      keyPage(pageContext, { ...key, hasOther: true, brandSlug: null, brandId: null }),
    )
    expect(second).toContain('Both keys of shop are valid now.')
    expect(second).toContain('Replace BRAND with the slug of an active brand')
  })

  test('offer a second key to apps with one key, and revocation of each key to apps with two', async () => {
    const newer = { ...appKey, lastFour: 'Qz1c', lastUsedAt: null }
    const old = { ...appKey, lastFour: 'dead', revokedAt: now }
    const withKeys = (keys: AppsModel['apps'][number]['keys']) =>
      forms(
        appsPage(pageContext, { ...apps, apps: [{ appId: 'shop', createdAt: now, revokedAt: null, keys }] }),
      )
    const scope = { was: '{}', anyBrand: '1', operations: 'notify', perMinute: '' }
    const issue = ['/admin/apps/issue', { ...scope, appId: '' }] as const
    const revoke = ['/admin/apps/revoke', { appId: 'shop' }] as const
    expect(await withKeys([old, appKey])).toEqual([['/admin/apps/rotate', { appId: 'shop' }], revoke, issue])
    expect(await withKeys([old, appKey, newer])).toEqual([
      revoke,
      ['/admin/apps/revoke-key', { appId: 'shop', key: '7f3a' }],
      ['/admin/apps/revoke-key', { appId: 'shop', key: 'Qz1c' }],
      issue,
    ])
    const page = await words(appsPage(pageContext, { ...apps, apps: [] }))
    expect(page).toContain('otpost app issue APPID')
    expect(page).toContain('legacy')
  })

  test('show a brand with one edit form, status buttons, and one form for each template', async () => {
    const page = brandPage(pageContext, brandModel(brand))
    const all = await forms(page)
    expect(all.find(([action]) => action === '/admin/brands/acme')).toEqual([
      '/admin/brands/acme',
      {
        slug: 'acme',
        was: '{}',
        displayName: 'Acme',
        domain: '',
        androidHash: '',
        lang: 'en',
        notifyTemplates: 'ORDER_PLACED',
        loginIdEnabled: '1',
        logoUrl: '',
        color: '',
        dltEnabled: '1',
        entityId: '',
      },
    ])
    expect(all.filter(([action]) => action.endsWith('/status'))).toEqual([
      ['/admin/brands/acme/status', { status: 'suspended' }],
    ])
    expect(all.filter(([action]) => action.endsWith('/templates/LOGIN_OTP'))).toEqual([
      ['/admin/brands/acme/templates/LOGIN_OTP', { id: '1107', senderId: 'ACMEIN', maxLength: '' }],
      ['/admin/brands/acme/templates/LOGIN_OTP', { remove: '1' }],
    ])
    expect(page).toMatch(/<textarea[^>]* name="ids"[^>]*>msg91=64f0<\/textarea>/)
    const fresh = await forms(brandPage(pageContext, { ...brandModel(brand), brand: null, nextStatuses: [] }))
    expect(fresh.map(([action]) => action)).toEqual(['/admin/brands'])
  })

  test('show the wording of each template with the names of its variables', async () => {
    const text = await words(
      brandPage(pageContext, brandModel(brand, { previews: previewsOf(brand, settings) })),
    )
    expect(text).toContain('Hi customerName, your businessName order orderId is out for delivery.')
  })

  for (const [customerName, size, why] of [
    ['Jane', '1 segment · GSM-7 · 75 of 160 characters', 'bill 1 segment.'],
    ['[Jane] €', '1 segment · GSM-7 · 82 of 160 characters', '[ ] € count as two characters.'],
    ['Zoë', '2 segments · UCS-2 · 74 of 134 characters', 'ë is not in GSM-7'],
    ['Zoë’s mother', '2 segments · UCS-2 · 83 of 134 characters', 'bill 2 segments. ë ’ are not'],
  ] as const) {
    test(`show the size of a message to ${customerName} in the preview`, async () => {
      const given = { customerName, orderId: 'A-1042', orderDate: '2026-11-21' }
      const preview = previewOf(brand, templateNamed('ORDER_PLACED'), given, settings)
      const html = previewFragment(preview)
      const text = await words(html)
      expect(text).toContain(`Hi ${customerName}, we received your Acme order`)
      expect(text).toContain(size)
      expect(text).toContain(why)
      // The summary for screen readers is the same.
      expect((await read(html)).all('div')[0]?.get('data-summary')).toBe(size)
    })
  }

  test('show the validation error in place of the preview for a rejected value', async () => {
    const refused = previewOf(brand, templateNamed('ORDER_PLACED'), { orderDate: '2026-02-30' }, settings)
    const text = await words(previewFragment(refused))
    expect(text).toContain('variables.orderDate must be a date that exists')
    expect(text).not.toContain('segment')
  })

  test('link each delivery to its request trace, and have no phone number in any URL', async () => {
    const failed: Delivery = { ...delivery, report: { status: 'failed', reason: '30006', at: now } }
    const filters = { recipientSubjects: ['hash-of-a-recipient'], provider: 'twilio' }
    const page = deliveriesPage(pageContext, {
      ...deliveries,
      filters,
      masked: '12*******43',
      found: { rows: [failed], next: { requestId, attempt: 2, at: now } },
      isLater: true,
    })
    const { all } = await read(page)
    const links = all('a').flatMap((link) => link.get('href') ?? [])
    expect(links).toContain(`/admin/deliveries/${requestId}`)
    const own = '/admin/deliveries?recipient=hash-of-a-recipient'
    expect(links).toContain(`${own}&provider=twilio&before=${requestId}.2`)
    expect(links).toContain(`${own}&provider=twilio`)
    // Without one filter each.
    for (const link of [own, '/admin/deliveries?provider=twilio']) expect(links).toContain(link)
    expect(links).toContain('/admin/deliveries.csv?recipient=hash-of-a-recipient&provider=twilio')
    expect(links).toContain('/admin/calls?recipient=hash-of-a-recipient&provider=twilio')
    expect(links.join(' ')).not.toContain('*')
    const text = await words(page)
    for (const told of [
      'not delivered',
      '30006',
      'twilio',
      'plain route',
      'LOGIN_OTP',
      '1 segment · GSM-7',
      '412 ms',
      '+12*******43',
    ]) {
      expect(text).toContain(told)
    }
  })

  for (const [state, change, told] of [
    ['nothing was sent', {}, 'otpost deliveries --since 1d'],
    ['nothing was found', { filters: { requestId } }, 'DELIVERY_LOG_DAYS'],
    ['a recipient was rejected', { filters: { recipientSubjects: ['h'] } }, 'Search the API calls'],
    ['nothing is older', { isLater: true }, 'Nothing older'],
    [
      'more rows can be searched',
      {
        found: { rows: [], next: { requestId, attempt: 1, at: now } },
        searchedTo: now,
        filters: { country: 'LU' },
      },
      'Nothing found back to',
    ],
  ] as const) {
    test(`explain an empty list of deliveries: ${state}`, async () => {
      const page = deliveriesPage(pageContext, { ...deliveries, found: { rows: [], next: null }, ...change })
      expect(await words(page)).toContain(told)
    })
  }

  const left: Delivery = {
    ...delivery,
    outcome: 'unknown',
    errorClass: 'unknown',
    reason: 'time-out',
    providerMessageId: null,
    reportKey: null,
    durationMs: 4000,
  }
  const next: Delivery = { ...delivery, attempt: 2, provider: 'vonage', at: delivery.at + 4000 }
  const traces: readonly (readonly [string, TraceModel])[] = [
    ['a code that two providers tried', traceModel({}, [left, next])],
    [
      'a rate-limited code',
      traceModel(
        {
          limits: [
            { limit: 'cooldown', max: 1, used: 1, endsAt: now, refused: false },
            { limit: 'phone-minute', max: 3, used: 3, endsAt: now, refused: true },
          ],
          end: { status: 429, error: 'rate_limited', message: null, durationMs: 2 },
        },
        [],
      ),
    ],
    [
      'a wrong code',
      traceModel(
        { operation: 'verify', end: { status: 401, error: 'mismatch', message: null, durationMs: 2 } },
        [],
      ),
    ],
    ['a request without a response', traceModel({ end: null }, [])],
    [
      'a notification to several recipients',
      traceModel({ operation: 'notify', recipient: null, recipients: 2 }, [
        { ...delivery, position: 1 },
        {
          ...delivery,
          attempt: 2,
          position: 2,
          outcome: 'rejected',
          errorClass: 'recipient',
          reason: '21211',
          providerMessageId: null,
          reportKey: null,
        },
      ]),
    ],
  ]
  for (const [name, model] of traces) {
    test(`show the same request trace as explain: ${name}`, async () => {
      const page = tracePage(pageContext, model)
      const text = await words(page)
      const headings = ['Checks', 'Delivery', 'What to do']
      for (const line of model.lines) {
        if (line === '' || headings.includes(line)) continue
        // The page replaces these words by icons and headings.
        const said = line
          .trim()
          .replace(/^(passed|recorded|REJECTED|Request|\d+\.) +/, '')
          .replaceAll('`', '')
        expect(text).toContain(said.replace(/\s+/g, ' ').replace(/\d{2}\*+\d{2}/g, '+$&'))
      }
      await expectInert(page)
    })
  }

  test('link a request trace to the suspended brand', async () => {
    const end = { status: 403, error: 'brand_suspended', message: null, durationMs: 2 }
    const html = tracePage(pageContext, traceModel({ end }, []))
    const links = (await read(html)).all('a').filter((link) => link.get('class')?.startsWith('button'))
    expect(links.map((link) => link.get('href'))).toEqual(['/admin/brands/acme'])
    expect(await words(html)).toContain('activate it on its page')
  })

  test('show the used share of each limit in a request trace', async () => {
    const { lines } = traceModel({}, [])
    const html = tracePage(pageContext, traceModel({}, []))
    const line = lines.find((each) => each.includes('requests per minute for this app'))
    expect(line).toContain(': 4 of 10')
    const item = html.split('<li').find((part) => part.includes('requests per minute for this app')) ?? ''
    expect(item).toContain('<rect class="gauge-used" width="40"')
    expect(html.match(/class="gauge-used"/g)).toHaveLength(1)
  })
})
