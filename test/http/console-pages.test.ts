import { describe, expect, test } from 'bun:test'
import type {
  AppsModel,
  BrandModel,
  DeliveriesModel,
  KeyModel,
  RequestModel,
  RequestsModel,
  Shell,
  StoryModel,
} from '../../src/adapters/http/console/models.ts'
import { appsPage } from '../../src/adapters/http/console/pages/apps.tsx'
import { brandPage, brandsPage, previewFragment } from '../../src/adapters/http/console/pages/brands.tsx'
import { deliveriesPage, storyPage } from '../../src/adapters/http/console/pages/deliveries.tsx'
import { keyPage } from '../../src/adapters/http/console/pages/key.tsx'
import { requestPage, requestsPage } from '../../src/adapters/http/console/pages/requests.tsx'
import { segmentsOf } from '../../src/adapters/sms/segments.ts'
import type { Brand } from '../../src/domain/brand.ts'
import { explain } from '../../src/domain/explain.ts'
import type { Delivery, Story } from '../../src/domain/journal.ts'
import type { KeptRequest } from '../../src/domain/platform.ts'
import { previewOf, previewsOf } from '../../src/domain/preview.ts'
import { templateOf } from '../../src/domain/templates.ts'

/** What breaks out of text, of an attribute in either quotes, and of a comment, where it is not escaped. */
const hostile = `--></title></textarea><script>alert(1)</script>"'><img src=x onerror="alert(2)" style="color:red">`

const now = Date.UTC(2026, 0, 1, 12)

/** The elements of a page with their attributes, and its text, as a browser makes them of it. */
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
  const all = (tag: string) => elements.filter((element) => element.tag === tag).map((each) => each.attributes)
  return { elements, all, text: unescaped(text) }
}

function unescaped(text: string): string {
  const signs: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', '#39': "'", amp: '&' }
  return text.replace(/&(lt|gt|quot|#39|amp);/g, (whole, name) => signs[name] ?? whole)
}

/** What the policy of the console forbids, and what a page of it never needs. */
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
    expect([form.get('method'), form.get('action')]).toEqual(['post', expect.stringMatching(/^\/admin\//)])
  }
}

const shell: Shell = {
  version: '1.2.3',
  csrfToken: 'the-token-of-this-session',
  pendingRequests: 2,
  hasOutbox: true,
  now,
  flash: null,
}

describe('Requests, brands, apps and deliveries', () => {
  const kept: KeptRequest = {
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
    problem: null,
  }
  const requests: RequestsModel = { pending: [kept], decided: [], origin: 'https://otp.example.com' }
  const brand: Brand = {
    slug: 'acme',
    displayName: 'Acme',
    status: 'active',
    notifyTemplates: ['ORDER_PLACED'],
    dltEnabled: true,
    loginIdEnabled: true,
    domain: null,
    entityId: null,
    registrations: { LOGIN_OTP: { id: '1107', ids: { msg91: '64f0' }, senderId: 'ACMEIN' } },
  }
  const settings = { segmentsOf, otpTtlSeconds: 300 }

  function brandModel(of: Brand, change: Partial<BrandModel> = {}): BrandModel {
    const { status: _, registrations: __, domain, entityId, ...rest } = of
    return {
      brand: of,
      form: { ...rest, domain: domain ?? '', entityId: entityId ?? '' },
      problems: [],
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
    hasOther: false,
    origin: 'https://otp.example.com',
  }
  const appKey = { lastFour: '7f3a', createdAt: now - 9_000_000, revokedAt: null, lastUsedAt: now - 120_000 }
  const apps: AppsModel = {
    apps: [{ appId: 'shop', createdAt: now - 9_000_000, revokedAt: null, keys: [appKey] }],
    configured: ['legacy'],
    appId: '',
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
    provider: 'twilio',
    template: 'LOGIN_OTP',
    recipient: '12*******43',
    position: null,
    recipientSubject: 'hash-of-a-recipient',
    segments: { count: 1, encoding: 'GSM-7' },
    outcome: 'accepted',
    errorClass: null,
    reason: null,
    vendorId: 'SM42',
    receiptKey: 'twilio:SM42',
    durationMs: 412,
    receipt: null,
  }
  const nothingFound = { requestId: null, recipient: null }
  const deliveries: DeliveriesModel = {
    rows: [delivery],
    search: nothingFound,
    next: null,
    isLater: false,
    problem: null,
  }
  const story: Story = {
    requestId,
    at: now - 61_000,
    operation: 'send',
    app: 'shop',
    brand: 'acme',
    channel: 'SMS',
    recipient: '12*******43',
    recipients: null,
    recipientSubject: 'hash-of-a-recipient',
    limits: [
      { limit: 'cooldown', max: 1, used: 1, endsAt: now, refused: false },
      { limit: 'app-minute', max: 10, used: 4, endsAt: now, refused: false },
    ],
    end: { status: 200, error: null, message: null, durationMs: 1200 },
  }

  function storyModel(change: Partial<Story>, rows: readonly Delivery[]): StoryModel {
    const changed = { ...story, ...change }
    return { story: changed, deliveries: rows, lines: explain(changed, rows) }
  }

  const hostileRequest: KeptRequest = {
    ...kept,
    id: hostile,
    companyName: hostile,
    contactName: hostile,
    contactEmail: hostile,
    brandName: hostile,
    website: `javascript:${hostile}`,
    useCase: hostile,
  }
  const hostileBrand: Brand = {
    ...brand,
    slug: hostile,
    displayName: hostile,
    domain: hostile,
    entityId: hostile,
    notifyTemplates: [hostile],
    registrations: { LOGIN_OTP: { id: hostile, ids: { [hostile]: hostile }, senderId: hostile } },
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
    vendorId: hostile,
    receipt: { status: 'failed', reason: hostile, at: now },
  }
  const hostilePages: readonly (readonly [string, (shell: Shell) => string])[] = [
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
    ['no requests', (around) => requestsPage(around, { pending: [], decided: [], origin: hostile })],
    [
      'a request',
      (around) =>
        requestPage(around, {
          request: hostileRequest,
          appId: hostile,
          brandSlug: hostile,
          reason: hostile,
          problem: hostile,
        }),
    ],
    [
      'a decided request',
      (around) =>
        requestPage(around, {
          ...request,
          request: { ...hostileRequest, status: 'rejected', decidedAt: now, decidedBy: hostile, reason: hostile },
        }),
    ],
    [
      'a key',
      (around) =>
        keyPage(around, {
          appId: hostile,
          apiKey: hostile,
          brandSlug: hostile,
          hasOther: true,
          origin: hostile,
        }),
    ],
    ['brands', (around) => brandsPage(around, { brands: [hostileBrand] })],
    [
      'a brand',
      (around) =>
        brandPage(
          around,
          brandModel(hostileBrand, {
            problems: [hostile],
            providers: [hostile],
            previews: [
              ...previewsOf(hostileBrand, settings),
              previewOf(hostileBrand, orderPlaced(), { customerName: hostile }, settings),
              { ...previewsOf(hostileBrand, settings)[0]!, problem: hostile, text: null },
            ],
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
            { appId: `${hostile}2`, createdAt: now, revokedAt: now, keys: [{ ...hostileKey, revokedAt: now }] },
          ],
          configured: [hostile],
          appId: hostile,
          problem: hostile,
        }),
    ],
    [
      'deliveries',
      (around) =>
        deliveriesPage(around, {
          rows: [hostileDelivery],
          search: { requestId: null, recipient: { hash: hostile, masked: hostile } },
          next: hostile,
          isLater: true,
          problem: hostile,
        }),
    ],
    [
      'no deliveries',
      (around) =>
        deliveriesPage(around, { ...deliveries, rows: [], search: { requestId: hostile, recipient: null } }),
    ],
    [
      'a story',
      (around) =>
        storyPage(
          around,
          storyModel(
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

  function orderPlaced() {
    const template = templateOf('ORDER_PLACED')
    if (!template) throw new Error('there is no ORDER_PLACED')
    return template
  }

  for (const [name, page] of hostilePages) {
    test(`shows hostile text as text: ${name}`, async () => {
      const html = page({ ...shell, flash: { tone: 'bad', text: hostile } })
      await expectInert(html)
      const { text } = await read(html)
      // In the flash at least; where a page shows more of it, none of that became an element either.
      expect(text).toContain(hostile)
    })
  }

  test('shows a hostile preview as text', async () => {
    const named = previewOf({ ...brand, displayName: hostile }, orderPlaced(), {}, settings)
    const refused = previewOf(brand, orderPlaced(), { customerName: hostile }, settings)
    for (const preview of [named, { ...refused, problem: hostile }]) {
      const html = previewFragment(preview)
      await expectInert(html)
      expect((await read(html)).text).toContain(hostile)
    }
  })

  test('every form proves that it came from this session', async () => {
    const pages = [
      ...hostilePages.map(([, page]) => page(shell)),
      appsPage(shell, apps),
      brandPage(shell, brandModel(brand)),
      requestPage(shell, request),
    ]
    for (const html of pages) {
      const forms = html.split('<form').slice(1)
      expect(forms.length).toBeGreaterThan(0)
      const without = forms.filter((form) => {
        const [own = ''] = form.split('</form>')
        return !own.includes('<input type="hidden" name="csrf" value="the-token-of-this-session"')
      })
      expect(without).toEqual([])
    }
  })

  test('every control has a label, and no two share an id', async () => {
    for (const [, page] of hostilePages) {
      const { elements, all } = await read(page(shell))
      const ids = elements.flatMap(({ attributes }) => attributes.get('id') ?? [])
      const visible = [...all('input').filter((each) => each.get('type') !== 'hidden'), ...all('textarea')]
      const labelled = new Set(all('label').map((label) => label.get('for')))
      expect(visible.filter((each) => !labelled.has(each.get('id')))).toEqual([])
      expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([])
    }
  })
})
