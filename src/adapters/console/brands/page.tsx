/** @jsxImportSource preact */

import { brandSetStatus } from '../../../domain/operator/brands.ts'
import {
  type Brand,
  type BrandStatus,
  type BrandWithTexts,
  ownTemplateKeys,
} from '../../../domain/texts/brand.ts'
import type { Preview } from '../../../domain/texts/preview.ts'
import { notifyTemplateKeys } from '../../../domain/texts/templates.ts'
import {
  Badge,
  Choice,
  Empty,
  Field,
  FieldGroup,
  LinkButton,
  Snippet,
  type Tone,
} from '../../pages/components.tsx'
import { ActionForm } from '../action-form.tsx'
import { Card, consolePage, Form, FormLink, Problems, Table } from '../components.tsx'
import type { PageContext } from '../page-context.ts'
import { testPath } from '../test-send/page.tsx'
import { PreviewMessage, PreviewSlot, pathOf } from '../texts/messages.tsx'
import { textsPath } from '../texts/page.tsx'

export type BrandForm = Pick<
  Brand,
  'slug' | 'displayName' | 'notifyTemplates' | 'dltEnabled' | 'loginIdEnabled' | 'lang'
> &
  // `dltAllowList` has one entry per line.
  Readonly<Record<'domain' | 'entityId' | 'androidHash' | 'logoUrl' | 'color' | 'dltAllowList', string>>

interface BrandModel {
  /** Null: a new brand. */
  readonly brand: BrandWithTexts | null
  readonly form: BrandForm
  /** The form's initial values as JSON, which it sends back. */
  readonly was: string
  readonly problems: readonly string[]
  readonly nextStatuses: readonly BrandStatus[]
  /** Of a code. */
  readonly preview: Preview
}

export function brandsPage(pageContext: PageContext, brands: readonly Brand[]): string {
  return consolePage(
    pageContext,
    {
      title: 'Brands',
      section: 'brands',
      actions: (
        <>
          <LinkButton href="/admin/review-numbers">Review numbers</LinkButton>
          <FormLink href="/admin/brands/new" kind="primary">
            New brand
          </FormLink>
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
              <FormLink href="/admin/brands/new" kind="primary">
                New brand
              </FormLink>
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
  const { brand, problems, preview } = model
  const title = brand?.displayName ?? 'New brand'
  return consolePage(
    pageContext,
    {
      title,
      section: 'brands',
      parent: { title: 'Brands', href: '/admin/brands' },
      actions: brand && (
        <>
          <BrandStatusBadge status={brand.status} />
          <LinkButton href={textsPath(brand)}>Texts</LinkButton>
          <FormLink href={testPath({ brand: brand.slug })}>Send a test</FormLink>
        </>
      ),
      scripts: ['preview.js'],
    },
    <>
      <Problems list={problems} />
      <div class="columns wide-first loose">
        <Card title="Properties">
          <Properties model={model} />
        </Card>
        <div class="stack beside">
          {brand === null ? (
            <Card
              title="After you create it"
              hint="The brand is active immediately. Apps send its slug as `brandId`. It has a page of texts."
            />
          ) : (
            <Status brand={brand} nextStatuses={model.nextStatuses} />
          )}
          <Card title="Preview" hint="A code SMS with the values in this form, saved or not.">
            <div class="tryout" data-preview={preview.templateKey}>
              <PreviewSlot>
                <PreviewMessage preview={preview} />
              </PreviewSlot>
            </div>
          </Card>
        </div>
      </div>
    </>,
  )
}

function Properties({ model }: { model: BrandModel }) {
  const { brand, form, was } = model
  return (
    <Form
      action={brand ? pathOf(brand) : '/admin/brands'}
      id="brand"
      previewAt="/admin/preview"
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
        placeholder={exampleName}
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
            hint="Requires `OTP_SMS_MODE` template or hybrid. Enter the template IDs on the page of each text."
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

/** Of a brand without a name, also in previews. */
export const exampleName = 'Example Shop'

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
        <ActionForm
          key={status}
          of={brandSetStatus}
          hidden={{ slug: brand.slug, status }}
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

const brandTones: Readonly<Record<BrandStatus, Tone>> = { pending: 'warn', active: 'good', suspended: 'bad' }

function BrandStatusBadge({ status }: { status: BrandStatus }) {
  return <Badge tone={brandTones[status]}>{status}</Badge>
}
