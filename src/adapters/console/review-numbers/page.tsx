/** @jsxImportSource preact */

import {
  maxReviewNumbers,
  reviewNumberAdd,
  reviewNumberRemove,
} from '../../../domain/operator/review-numbers.ts'
import { type ReviewNumber, reviewNumberListing, untilWords } from '../../../domain/policy/review-number.ts'
import { Time } from '../../pages/components.tsx'
import { ActionButton, ActionForm } from '../action-form.tsx'
import { actions, Card, columnsOf, consolePage, ShownOnce, Table, withPlus } from '../components.tsx'
import type { PageContext } from '../page-context.ts'

export interface ReviewNumbersModel {
  /** Active ones. */
  readonly numbers: readonly ReviewNumber[]
  /** Slugs. */
  readonly brands: readonly string[]
  /** Of the number that was added. */
  readonly code: { readonly title: string; readonly code: string } | null
}

export function reviewNumbersPage(pageContext: PageContext, model: ReviewNumbersModel): string {
  const { numbers, code } = model
  return consolePage(
    pageContext,
    {
      title: 'Review numbers',
      section: null,
      parent: { title: 'Brands', href: '/admin/brands' },
    },
    <>
      {code && <NewCode {...code} />}
      <div class="columns wide-first loose">
        <Card
          title="Review numbers"
          hint="Codes to these numbers are not sent: a fixed code verifies. All limits apply."
        >
          <Table
            caption="Review numbers"
            columns={[...columnsOf(reviewNumberListing, 'phone', 'brand', 'until', 'createdAt'), actions]}
            rows={numbers.map(numberCells)}
            empty="None."
          />
        </Card>
        <AddForm model={model} />
      </div>
    </>,
  )
}

function NewCode({ code, title }: NonNullable<ReviewNumbersModel['code']>) {
  return (
    <ShownOnce title={title} thing="code" text={code}>
      otpost stores only its keyed hash. If you lose it, remove the review number and add it again.
    </ShownOnce>
  )
}

function numberCells(number: ReviewNumber) {
  const { subject, brandSlug, masked, createdAt } = number
  const name = `${withPlus(masked)} of ${brandSlug}`
  return [
    <bdi class="masked">{withPlus(masked)}</bdi>,
    <bdi class="breaks">{brandSlug}</bdi>,
    untilWords(number),
    <Time at={createdAt} />,
    <ActionButton
      of={reviewNumberRemove}
      with={{ phone: '', subject, brand: brandSlug }}
      confirm={`Remove the review number ${name}? Its fixed code ends, and codes are sent by SMS.`}
      kind="danger"
    >
      Remove<span class="sr-only"> {name}</span>
    </ActionButton>,
  ]
}

function AddForm({ model: { brands } }: { model: ReviewNumbersModel }) {
  return (
    <Card title="Add a review number" hint={`At most ${maxReviewNumbers} numbers exist at a time.`}>
      <ActionForm
        of={reviewNumberAdd}
        options={{ brand: Object.fromEntries(brands.map((slug) => [slug, slug])) }}
        submit="Add"
      />
    </Card>
  )
}
