/** @jsxImportSource preact */
import { renderToString } from 'preact-render-to-string'
import { type Brand, type BrandStatus, ownTemplateKeys } from '../../../domain/brands/brand.ts'
import type { Preview } from '../../../domain/messages/preview.ts'
import { notifyTemplateKeys } from '../../../domain/messages/templates.ts'
import {
  Badge,
  Button,
  Choice,
  Empty,
  Field,
  FieldGroup,
  LinkButton,
  Marked,
  rich,
  Snippet,
} from '../../pages/components.tsx'
import { counted } from '../../pages/words.ts'
import { Card, consolePage, Drawing, Form, Notice, Table } from '../components.tsx'
import type { BrandModel, PageContext } from '../models.ts'
import { BrandStatusBadge } from './parts.tsx'

export function brandsPage(pageContext: PageContext, brands: readonly Brand[]): string {
  return consolePage(
    pageContext,
    {
      title: 'Brands',
      section: 'brands',
      actions: (
        <>
          <LinkButton href="/admin/review-numbers">Review numbers</LinkButton>
          <LinkButton href="/admin/brands/new" kind="primary">
            New brand
          </LinkButton>
        </>
      ),
    },
    <Card>
      <Table
        caption="Brands"
        columns={['Brand', 'Status', 'Notify templates', 'SMS route', 'Login ID in codes', 'Domain']}
        rows={brands.map((brand) => [
          <a class="entry" href={pathOf(brand)}>
            <bdi class="entry-name breaks">{brand.displayName}</bdi>
            <code>{brand.slug}</code>
          </a>,
          <BrandStatusBadge status={brand.status} />,
          brand.notifyTemplates.length === 0 ? (
            <span class="hint">none</span>
          ) : (
            <ul class="chips">
              {brand.notifyTemplates.map((key) => (
                <li key={key}>
                  <code>{key}</code>
                </li>
              ))}
            </ul>
          ),
          brand.dltEnabled ? 'registered template' : 'plain',
          brand.loginIdEnabled ? 'yes' : 'no',
          brand.domain === null ? <span class="hint">none</span> : <bdi class="breaks">{brand.domain}</bdi>,
        ])}
        empty={
          <Empty title="No brands">
            <p>Apps send SMS for a brand. Create the first brand:</p>
            <p>
              <LinkButton href="/admin/brands/new" kind="primary">
                New brand
              </LinkButton>
            </p>
            <p>Or run this command on the server:</p>
            <Snippet
              title="Create a brand"
              text="otpost brand put acme --name 'Acme' --notify ORDER_PLACED"
            />
          </Empty>
        }
      />
    </Card>,
  )
}

export function brandPage(pageContext: PageContext, model: BrandModel): string {
  const { brand, form, problems, previews } = model
  const [first] = previews
  const title = brand?.displayName ?? 'New brand'
  return consolePage(
    pageContext,
    {
      title,
      section: 'brands',
      parent: { title: 'Brands', href: '/admin/brands' },
      actions: brand === null ? undefined : <BrandStatusBadge status={brand.status} />,
      scripts: ['preview.js'],
    },
    <>
      {problems.length > 0 && (
        <Notice tone="bad">
          <ul class="problems">
            {problems.map((problem) => (
              <li key={problem}>{rich(problem)}</li>
            ))}
          </ul>
        </Notice>
      )}
      <div class="columns wide-first loose">
        <Card title="Properties">
          <Properties model={model} />
        </Card>
        <div class="stack beside">
          {brand === null ? (
            <Card
              title="After you create it"
              hint="The brand is active immediately. Apps send its slug as `brandId`. The previews below show its messages."
            />
          ) : (
            <Status brand={brand} nextStatuses={model.nextStatuses} />
          )}
          {first && (
            <Card title="Preview" hint="A code SMS with the values in this form, saved or not.">
              <div class="tryout" data-preview={first.templateKey} data-follows-brand>
                <fieldset class="values" hidden>
                  {first.variables.map(({ name, value }) => (
                    <input key={name} type="hidden" name={`var.${name}`} value={value} />
                  ))}
                </fieldset>
                <PreviewSlot preview={first} />
              </div>
            </Card>
          )}
        </div>
      </div>
      {previews.length > 0 && (
        <section class="stack" aria-labelledby="templates-title">
          <header class="over">
            <h2 id="templates-title">Messages</h2>
            <p class="hint">
              Previews with the values in the form above, saved or not. Change a value to update a preview.
              {form.dltEnabled && form.domain !== '' && (
                <> On the registered-template route, codes do not end with the WebOTP line.</>
              )}
            </p>
          </header>
          {previews.map((preview) => (
            <Template key={preview.templateKey} model={model} preview={preview} />
          ))}
        </section>
      )}
    </>,
  )
}

/** For preview.js. */
export function previewFragment(preview: Preview): string {
  return renderToString(<PreviewMessage preview={preview} />)
}

function Properties({ model }: { model: BrandModel }) {
  const { brand, form, was } = model
  return (
    <Form
      action={brand ? pathOf(brand) : '/admin/brands'}
      id="brand"
      hidden={brand ? { was, slug: brand.slug } : {}}
      submit={brand ? 'Save' : 'Create brand'}
    >
      {brand === null ? (
        <Field
          label="Slug"
          name="slug"
          value={form.slug}
          required
          isCode
          maxLength={63}
          hint="Apps send it as `brandId`. Allowed: a-z, 0-9 and -. You cannot change it later."
        />
      ) : (
        <p class="hint">
          Apps send <code>{brand.slug}</code> as <code>brandId</code>.
        </p>
      )}
      <Field
        label="Name"
        name="displayName"
        value={form.displayName}
        required
        maxLength={40}
        hint="Shown in messages. At most 40 characters."
      />
      <Field
        label="Domain"
        name="domain"
        value={form.domain}
        isCode
        placeholder="shop.example.com"
        hint="The domain of the brand’s website. If set, plain SMS end with a WebOTP line, and browsers can fill in the code."
      />
      <Field
        label="Android app hash"
        name="androidHash"
        value={form.androidHash}
        isCode
        maxLength={11}
        placeholder="FA+9qCX9VSu"
        hint="11 characters with which the brand’s Android app finds the code SMS (SMS Retriever)."
      />
      <Field
        label="Language"
        name="lang"
        value={form.lang}
        isCode
        maxLength={64}
        placeholder="en"
        hint="Of messages whose request has no `lang`: a BCP 47 tag, such as hi or pt-BR."
      />
      <FieldGroup legend="Notify templates">
        {[...notifyTemplateKeys, ...(brand ? ownTemplateKeys(brand) : [])].map((key) => (
          <Choice
            key={key}
            id={`notify-${key}`}
            label={<code>{key}</code>}
            name="notifyTemplates"
            value={key}
            checked={form.notifyTemplates.includes(key)}
          />
        ))}
      </FieldGroup>
      <FieldGroup legend="Codes">
        <Choice
          label="Include the login ID"
          name="loginIdEnabled"
          checked={form.loginIdEnabled}
          hint="If a request has `loginId`, the message names that login."
        />
      </FieldGroup>
      <details class="fold" open={form.logoUrl !== '' || form.color !== ''}>
        <summary>
          E-mails <span class="hint">logo and color</span>
        </summary>
        <div class="folded">
          <Field
            label="Logo"
            name="logoUrl"
            value={form.logoUrl}
            isCode
            maxLength={500}
            hint="An https URL. The image is at the top of e-mails."
          />
          <Field label="Color" name="color" value={form.color} isCode maxLength={7} placeholder="#0b57d0" />
        </div>
      </details>
      <details class="fold" open={form.dltEnabled || form.entityId !== '' || form.dltAllowList !== ''}>
        <summary>
          Registered templates <span class="hint">for DLT in India and for providers’ own template IDs</span>
        </summary>
        <div class="folded">
          <Choice
            label="Use the registered-template route"
            name="dltEnabled"
            checked={form.dltEnabled}
            hint="Requires `OTP_SMS_MODE` template or hybrid. Enter the template IDs with each message below."
          />
          <Field
            label="Entity ID"
            name="entityId"
            value={form.entityId}
            isCode
            maxLength={64}
            hint="The brand’s principal entity ID in DLT."
          />
          <Field
            label="Registered URLs and phone numbers"
            name="dltAllowList"
            value={form.dltAllowList}
            rows={3}
            isCode
            hint="One per line. Registered texts may contain only these (DLT allow-list)."
          />
        </div>
      </details>
    </Form>
  )
}

const statusMeanings: Readonly<Record<BrandStatus, string>> = {
  pending: 'Not approved yet. Requests for this brand are rejected with brand_not_approved.',
  active: 'Apps can send messages for this brand.',
  suspended:
    'Requests for this brand are rejected with brand_suspended. Codes that were already sent cannot be verified.',
}

const transitionWords: Readonly<Record<BrandStatus, string>> = {
  pending: 'Set back to pending',
  active: 'Activate',
  suspended: 'Suspend',
}

function Status({ brand, nextStatuses }: { brand: Brand; nextStatuses: BrandModel['nextStatuses'] }) {
  return (
    <Card title="Status">
      <p>
        <BrandStatusBadge status={brand.status} /> <span class="hint">{statusMeanings[brand.status]}</span>
      </p>
      {nextStatuses.map((status) => (
        <Form
          key={status}
          action={`${pathOf(brand)}/status`}
          hidden={{ status }}
          submit={transitionWords[status]}
          {...(status === 'suspended' && {
            kind: 'danger',
            confirm: `Suspend ${brand.displayName}? All requests for it are rejected immediately.`,
          })}
        />
      ))}
    </Card>
  )
}

function Template({ model, preview }: { model: BrandModel; preview: Preview }) {
  const { brand, form } = model
  const { templateKey, audience, variables } = preview
  const isEnabled = form.notifyTemplates.includes(templateKey)
  const state = audience === 'otp' ? 'code' : isEnabled ? 'enabled' : 'not enabled'
  // Texts and variable names alternate.
  const wording = preview.template
    .split(/\{(\w+)\}/)
    .map((part, index) => (index % 2 === 0 ? part : <var key={`${index} ${part}`}>{part}</var>))
  return (
    <Card
      class="template"
      title={<code>{templateKey}</code>}
      hint={wording}
      actions={<Badge tone={state === 'enabled' ? 'good' : 'quiet'}>{state}</Badge>}
    >
      <div class="tryout" data-preview={templateKey}>
        <fieldset class="values" hidden>
          <legend class="sr-only">Sample values for {templateKey}</legend>
          {variables.map(({ name, value, description }) => (
            <Field
              key={name}
              id={`${templateKey}-${name}`}
              label={<code>{name}</code>}
              name={`var.${name}`}
              value={value}
              hint={description}
            />
          ))}
          {variables.length === 0 && <p class="hint">This text has no variables other than the brand’s.</p>}
        </fieldset>
        <PreviewSlot preview={preview} />
      </div>
      {brand !== null && <Registration brand={brand} preview={preview} providers={model.providers} />}
    </Card>
  )
}

/** preview.js replaces its content. */
function PreviewSlot({ preview }: { preview: Preview }) {
  return (
    <>
      <div data-preview-place>
        <PreviewMessage preview={preview} />
      </div>
      <p class="sr-only" role="status" data-preview-said />
    </>
  )
}

function PreviewMessage({ preview }: { preview: Preview }) {
  const { text, problem, segments } = preview
  if (text === null) {
    return (
      <div class="reading" data-summary={problem ?? ''}>
        <p class="unreadable">{rich(problem ?? 'No preview with these values.')}</p>
      </div>
    )
  }
  const size = segments && sizeOf(segments, text)
  return (
    <div class="reading" data-summary={size?.summary ?? ''}>
      <div class="handset">
        <p class="handset-sender">Text message</p>
        <div class="bubble">
          <p class="text" dir="auto">
            <Marked text={text} code={preview.variables.find(({ name }) => name === 'otp')?.value} />
          </p>
        </div>
      </div>
      {size && (
        <div class="cost">
          <SegmentBar {...size} />
          <p class="cost-size">{size.summary}</p>
          <p class="hint">
            Providers bill {counted(size.count, 'segment')}.
            <LongCharacters text={text} encoding={size.encoding} />
          </p>
        </div>
      )}
    </div>
  )
}

/** Characters of a single message, and of each segment of a longer one, which has a header. */
const capacities = { 'GSM-7': { single: 160, part: 153 }, 'UCS-2': { single: 70, part: 67 } } as const

function sizeOf({ count, encoding }: NonNullable<Preview['segments']>, text: string) {
  const { single, part } = capacities[encoding]
  const capacity = count === 1 ? single : count * part
  const used = lengthOf(text, encoding)
  const summary = `${count} ${count === 1 ? 'segment' : 'segments'} · ${encoding} · ${used} of ${capacity} characters`
  return { count, encoding, used, capacity, summary }
}

function lengthOf(text: string, encoding: 'GSM-7' | 'UCS-2'): number {
  return encoding === 'UCS-2' ? text.length : text.length + (text.match(extensionCharacters)?.length ?? 0)
}

/** The GSM-7 extension. Its characters count as two. */
const extensionCharacters = /[\^{}\\[~\]|€\f]/g

function SegmentBar({ count, used, capacity }: ReturnType<typeof sizeOf>) {
  const width = 100 / count
  const gap = count === 1 ? 0 : Math.min(1, width / 4)
  const filled = Math.min(1, used / capacity) * count
  return (
    <Drawing class="segments" viewBox="0 0 100 4">
      {Array.from({ length: count }, (_, index) => {
        const share = Math.max(0, Math.min(1, filled - index))
        const box = { x: index * width, y: 0, height: 4 }
        return (
          <g key={index} class={count > 1 ? 'several' : undefined}>
            <rect class="segment-room" {...box} width={width - gap} />
            <rect class="segment-used" {...box} width={(width - gap) * share} />
          </g>
        )
      })}
    </Drawing>
  )
}

const gsm7 = /[@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&'()*+,\-./0-9:;<=>?¡A-ZÄÖÑÜ§¿a-zäöñüà^{}\\[~\]|€\f]/

function LongCharacters({ text, encoding }: { text: string; encoding: 'GSM-7' | 'UCS-2' }) {
  if (encoding === 'GSM-7') {
    const doubled = [...new Set(text.match(extensionCharacters) ?? [])]
    if (doubled.length === 0) return null
    return (
      <>
        {' '}
        <bdi>{doubled.join(' ')}</bdi> {doubled.length === 1 ? 'counts' : 'count'} as two characters.
      </>
    )
  }
  const all = [...new Set(text)].filter((character) => !gsm7.test(character))
  if (all.length === 0) return null
  return (
    <>
      {' '}
      <bdi>{all.slice(0, 5).join(' ')}</bdi>
      {all.length > 5 ? ' and others are' : all.length === 1 ? ' is' : ' are'} not in GSM-7, so a segment has
      at most 70 characters instead of 160.
    </>
  )
}

interface RegistrationProps extends Pick<BrandModel, 'providers'> {
  readonly brand: Brand
  readonly preview: Preview
}

function Registration({ brand, preview, providers }: RegistrationProps) {
  const { templateKey } = preview
  const { id, ids, senderId } = preview.registration
  const own = Object.entries(ids)
  const summary = [
    id === null ? '' : `ID ${id}`,
    own.length === 0 ? '' : own.map(([provider, its]) => `${provider} ${its}`).join(', '),
    senderId === null ? '' : `sender ${senderId}`,
  ].filter(Boolean)
  const action = `${pathOf(brand)}/templates/${encodeURIComponent(templateKey)}`
  return (
    <details class="fold">
      <summary>
        Registration <span class="hint">{summary.join(' · ') || 'not registered'}</span>
      </summary>
      <div class="folded">
        {!brand.dltEnabled && (
          <p class="hint">
            These values take effect when the brand uses the registered-template route (above).
          </p>
        )}
        <Form action={action} submit="Save registration" kind="plain">
          <div class="side-by-side">
            <Field
              label="Template ID"
              id={`${templateKey}-registered-id`}
              name="id"
              value={id ?? ''}
              isCode
              hint="For all providers without their own ID."
            />
            <Field
              label="Sender"
              id={`${templateKey}-registered-sender`}
              name="senderId"
              value={senderId ?? ''}
              isCode
              hint="The sender ID of the registration, for example ACMEIN."
            />
          </div>
          <Field
            label="Provider-specific template IDs"
            id={`${templateKey}-registered-ids`}
            name="ids"
            value={own.map(([provider, its]) => `${provider}=${its}`).join('\n')}
            rows={Math.max(2, own.length + 1)}
            isCode
            hint={`One PROVIDER=ID per line.${providers.length === 0 ? '' : ` Providers: ${providers.join(', ')}.`}`}
          />
        </Form>
        {summary.length > 0 && (
          <Form
            action={action}
            confirm={`Remove the registration of ${templateKey} for ${brand.displayName}?`}
          >
            <Button kind="danger" small name="remove" value="1">
              Remove registration
            </Button>
          </Form>
        )}
      </div>
    </details>
  )
}

function pathOf({ slug }: Pick<Brand, 'slug'>): string {
  return `/admin/brands/${encodeURIComponent(slug)}`
}
