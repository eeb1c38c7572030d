import { reviewNumberAdd } from '../../../domain/operator/review-numbers.ts'
import { activeReviewNumbers } from '../../../domain/policy/review-number.ts'
import { html } from '../answers.ts'
import type { PageContext } from '../page-context.ts'
import type { PageHandler } from '../page-handler.ts'
import { type ReviewNumbersModel, reviewNumbersPage } from './page.tsx'

export function reviewNumberRoutes({ get, after, ports }: PageHandler): void {
  const { brands, policy, now } = ports

  get('/admin/review-numbers', (_, pageContext) => shown(pageContext, null))
  after(reviewNumberAdd, ({ text, secret = '' }, _, __, pageContext) =>
    shown(pageContext, { title: text, code: secret }),
  )
  async function shown(pageContext: PageContext, code: ReviewNumbersModel['code']): Promise<Response> {
    const [{ reviewNumbers }, all] = await Promise.all([policy.rows(), brands.list()])
    const numbers = activeReviewNumbers(reviewNumbers, now())
    const model = { numbers, brands: all.map(({ slug }) => slug), code }
    return html(reviewNumbersPage({ ...pageContext, reviewNumbers: numbers.length }, model))
  }
}
