/** @jsxImportSource preact */

import { brandEntries, brandPut, brandSetStatus, freshBrand } from '../../../domain/operator/brands.ts'
import {
  type Brand,
  type BrandStatus,
  type BrandWithTexts,
  ownTemplateKeys,
} from '../../../domain/texts/brand.ts'
import type { Preview } from '../../../domain/texts/preview.ts'
import { notifyTemplateKeys } from '../../../domain/texts/templates.ts'
import { Badge, Empty, LinkButton, Snippet, type Tone } from '../../pages/components.tsx'
import { ActionForm } from '../action-form.tsx'
import { Card, consolePage, FormLink, Table } from '../components.tsx'
import type { PageContext } from '../page-context.ts'
import { testPath } from '../test-send/page.tsx'
import { PreviewMessage, PreviewSlot, pathOf } from '../texts/messages.tsx'
import { textsPath } from '../texts/page.tsx'

interface BrandModel {
  /** Null: a new brand. */
  readonly brand: BrandWithTexts | null
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
  const { brand, preview } = model
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
    <div class="columns wide-first loose">
      <Card title="Properties" hint={brand && `Apps send \`${brand.slug}\` as \`brandId\`.`}>
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
    </div>,
  )
}

function Properties({ model: { brand } }: { model: BrandModel }) {
  const keys = [...notifyTemplateKeys, ...(brand ? ownTemplateKeys(brand) : [])]
  return (
    <ActionForm
      of={brandPut}
      start={{ ...brandEntries(brand ?? freshBrand('')), ...(brand && { mustBeNew: false }) }}
      hidden={brand ? { slug: brand.slug } : { mustBeNew: 'true' }}
      without={['status', 'mustBeNew']}
      options={{ notifyTemplates: Object.fromEntries(keys.map((key) => [key, `\`${key}\``])) }}
      previewAt="/admin/preview"
      submit={brand ? 'Save' : 'Create brand'}
    />
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
