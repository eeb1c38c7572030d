/** @jsxImportSource preact */
import { renderToString } from 'preact-render-to-string'
import type { Brand, BrandStatus } from '../../../domain/brands/brand.ts'
import type { Preview } from '../../../domain/messages/preview.ts'
import { notifyTemplates } from '../../../domain/messages/templates.ts'
import {
  Badge,
  Button,
  Choice,
  Empty,
  Field,
  FieldGroup,
  LinkButton,
  Marked,
  Snippet,
} from '../../pages/components.tsx'
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
        <LinkButton href="/admin/brands/new" kind="primary">
          New brand
        </LinkButton>
      ),
    },
    <Card>
      <Table
        caption="Brands"
        columns={['Brand', 'Status', 'Templates on /notify', 'SMS route', 'Names the login', 'Domain']}
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
          <Empty title="No brand yet">
            <p>Messages go out in the name of a brand. Make the first one here, or on the command line:</p>
            <Snippet title="Make a brand" text="otpost brand put acme --name 'Acme' --notify ORDER_PLACED" />
            <p>
              <LinkButton href="/admin/brands/new" kind="primary">
                New brand
              </LinkButton>
            </p>
          </Empty>
        }
      />
    </Card>,
  )
}

/** /admin/brands/:slug and /admin/brands/new */
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
              <li key={problem}>{problem}</li>
            ))}
          </ul>
        </Notice>
      )}
      <div class="columns wide-first loose">
        <Card title="What it is">
          <Properties model={model} />
        </Card>
        <div class="stack beside">
          {brand === null ? (
            <Card
              title="What follows"
              hint="It is active at once: apps send for it with its slug as `brandId`. Below, its messages read as people will see them."
            />
          ) : (
            <Status brand={brand} nextStatuses={model.nextStatuses} />
          )}
          {first && (
            <Card title="A code for it" hint="As it reads with what is entered here, saved or not.">
              <div class="tryout" data-preview={first.templateKey} data-follows-brand>
                <fieldset class="values" hidden>
                  {first.variables.map(({ name, value }) => (
                    <input key={name} type="hidden" name={`var.${name}`} value={value} />
                  ))}
                </fieldset>
                <Place preview={first} />
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
              As they read with what is entered above, saved or not. Change a value to see what it does.
              {form.dltEnabled && form.domain !== '' && (
                <> On the registered-template route codes have no line for browsers at their end.</>
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

/** The answer to POST /admin/preview. */
export function previewFragment(preview: Preview): string {
  return renderToString(<Reading preview={preview} />)
}

function Properties({ model }: { model: BrandModel }) {
  const { brand, form, was } = model
  return (
    <Form
      action={brand ? pathOf(brand) : '/admin/brands'}
      id="brand"
      hidden={brand ? { was, slug: brand.slug } : {}}
      submit={brand ? 'Save' : 'Make the brand'}
    >
      {brand === null ? (
        <Field
          label="Slug"
          name="slug"
          value={form.slug}
          required
          isCode
          maxLength={63}
          hint="What callers send as `brandId`: a-z, 0-9 and -. It stays as it is."
        />
      ) : (
        <p class="hint">
          Callers send <code>{brand.slug}</code> as <code>brandId</code>.
        </p>
      )}
      <Field
        label="Name"
        name="displayName"
        value={form.displayName}
        required
        maxLength={40}
        hint="As messages show it; at most 40 characters."
      />
      <Field
        label="Domain"
        name="domain"
        value={form.domain}
        isCode
        placeholder="shop.example.com"
        hint="Of its website. With it, browsers fill the code in (WebOTP): plain SMS end with a line of its own."
      />
      <FieldGroup legend="Templates that apps may send on /notify">
        {notifyTemplates.map(({ key }) => (
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
          label="Name the login"
          name="loginIdEnabled"
          checked={form.loginIdEnabled}
          hint="Where a caller gives a `loginId`, its message says which login the code is for."
        />
      </FieldGroup>
      <details class="fold" open={form.dltEnabled || form.entityId !== ''}>
        <summary>
          Registered templates <span class="hint">India’s DLT, and vendors’ own catalogues</span>
        </summary>
        <div class="folded">
          <Choice
            label="Use the registered-template route"
            name="dltEnabled"
            checked={form.dltEnabled}
            hint="As far as `OTP_SMS_MODE` says. The ids are entered with each message below."
          />
          <Field
            label="Entity id"
            name="entityId"
            value={form.entityId}
            isCode
            maxLength={64}
            hint="Of the brand as a principal entity."
          />
        </div>
      </details>
    </Form>
  )
}

const statusMeanings: Readonly<Record<BrandStatus, string>> = {
  pending: 'It was made and not let in yet: whatever is sent for it is refused with brand_not_approved.',
  active: 'Messages go out for it.',
  suspended: 'Whatever is sent for it is refused with brand_suspended. Codes that are out are refused too.',
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
            confirm: `Suspend ${brand.displayName}? From then on whatever is sent for it is refused.`,
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
  const state = audience === 'otp' ? 'codes' : isEnabled ? 'enabled' : 'not enabled'
  // Text and variable names alternate.
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
          <legend class="sr-only">Values to try in {templateKey}</legend>
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
          {variables.length === 0 && <p class="hint">Nothing in it changes but what the brand says.</p>}
        </fieldset>
        <Place preview={preview} />
      </div>
      {brand !== null && <Registration brand={brand} preview={preview} providers={model.providers} />}
    </Card>
  )
}

/** preview.js replaces the content. */
function Place({ preview }: { preview: Preview }) {
  return (
    <>
      <div data-preview-place>
        <Reading preview={preview} />
      </div>
      <p class="sr-only" role="status" data-preview-said />
    </>
  )
}

/** The message on a phone, with its segments. */
function Reading({ preview }: { preview: Preview }) {
  const { text, problem, segments } = preview
  if (text === null) {
    return (
      <div class="reading" data-summary={problem ?? ''}>
        <p class="unreadable">{problem ?? 'It can’t be shown with these values.'}</p>
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
            {size.count === 1
              ? 'One message costs 1 segment.'
              : `One message costs ${size.count} segments: each is billed.`}
            <Culprits text={text} encoding={size.encoding} />
          </p>
        </div>
      )}
    </div>
  )
}

/** Characters of a single message, and of each part of a longer one, which needs a header. */
const capacities = { 'GSM-7': { single: 160, part: 153 }, 'UCS-2': { single: 70, part: 67 } } as const

function sizeOf({ count, encoding }: NonNullable<Preview['segments']>, text: string) {
  const { single, part } = capacities[encoding]
  const capacity = count === 1 ? single : count * part
  const used = roomOf(text, encoding)
  const summary = `${count} ${count === 1 ? 'segment' : 'segments'} · ${encoding} · ${used} of ${capacity} characters`
  return { count, encoding, used, capacity, summary }
}

/** Length in characters; some count as two. */
function roomOf(text: string, encoding: 'GSM-7' | 'UCS-2'): number {
  return encoding === 'UCS-2' ? text.length : text.length + (text.match(twiceAsLong)?.length ?? 0)
}

/** The GSM-7 extension, whose characters count as two. */
const twiceAsLong = /[\^{}\\[~\]|€\f]/g

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

/** GSM 03.38, basic alphabet and extension. */
const gsm7 = /[@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&'()*+,\-./0-9:;<=>?¡A-ZÄÖÑÜ§¿a-zäöñüà^{}\\[~\]|€\f]/

/** Names the characters that make the message longer. */
function Culprits({ text, encoding }: { text: string; encoding: 'GSM-7' | 'UCS-2' }) {
  if (encoding === 'GSM-7') {
    const doubled = [...new Set(text.match(twiceAsLong) ?? [])]
    if (doubled.length === 0) return null
    return (
      <>
        {' '}
        <bdi>{doubled.join(' ')}</bdi> {doubled.length === 1 ? 'takes' : 'take'} the room of two.
      </>
    )
  }
  const all = [...new Set(text)].filter((character) => !gsm7.test(character))
  if (all.length === 0) return null
  return (
    <>
      {' '}
      <bdi>{all.slice(0, 5).join(' ')}</bdi>
      {all.length > 5 ? ' and others are' : all.length === 1 ? ' is' : ' are'} not in GSM-7, so a segment
      holds 70 characters instead of 160.
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
    id === null ? '' : `id ${id}`,
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
          <p class="hint">These count once the brand uses the registered-template route (above).</p>
        )}
        <Form action={action} submit="Save the registration" kind="plain">
          <div class="side-by-side">
            <Field
              label="Template id"
              id={`${templateKey}-registered-id`}
              name="id"
              value={id ?? ''}
              isCode
              hint="For every provider that has none of its own."
            />
            <Field
              label="Sender"
              id={`${templateKey}-registered-sender`}
              name="senderId"
              value={senderId ?? ''}
              isCode
              hint="The header it is registered under, such as ACMEIN."
            />
          </div>
          <Field
            label="Ids that one provider alone uses"
            id={`${templateKey}-registered-ids`}
            name="ids"
            value={own.map(([provider, its]) => `${provider}=${its}`).join('\n')}
            rows={Math.max(2, own.length + 1)}
            isCode
            hint={`One PROVIDER=ID a line${providers.length === 0 ? '' : `; there are ${providers.join(', ')}`}.`}
          />
        </Form>
        {summary.length > 0 && (
          <Form action={action} confirm={`Forget how ${templateKey} is registered for ${brand.displayName}?`}>
            <Button kind="danger" small name="remove" value="1">
              Forget it
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
