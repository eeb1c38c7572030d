import {
  removedWords,
  removeReviewNumberOf,
  reviewNumberAdd,
} from '../../../domain/operator/review-numbers.ts'
import { activeReviewNumbers } from '../../../domain/policy/review-number.ts'
import { done, html } from '../answers.ts'
import { field } from '../form-fields.ts'
import type { PageContext } from '../page-context.ts'
import type { PageHandler } from '../page-handler.ts'
import { type ReviewNumbersModel, reviewNumbersPage } from './page.tsx'

export function reviewNumberRoutes({ get, post, after, ports }: PageHandler): void {
  const { brands, policy, now } = ports

  get('/admin/review-numbers', (_, pageContext) => shown(pageContext, null))
  after(reviewNumberAdd, ({ text, secret = '' }, _, __, pageContext) =>
    shown(pageContext, { title: text, code: secret }),
  )
  post('/admin/review-numbers/remove', async ({ visit, form, by }) => {
    const removed = await removeReviewNumberOf(by, [field(form, 'subject')], field(form, 'brand'))
    return done(visit, '/admin/review-numbers', removedWords(removed))
  })

  async function shown(pageContext: PageContext, code: ReviewNumbersModel['code']): Promise<Response> {
    const [{ reviewNumbers }, all] = await Promise.all([policy.rows(), brands.list()])
    const numbers = activeReviewNumbers(reviewNumbers, now())
    const model = { numbers, brands: all.map(({ slug }) => slug), code }
    return html(reviewNumbersPage({ ...pageContext, reviewNumbers: numbers.length }, model))
  }
}
