import { addReviewNumber, removeReviewNumberOf } from '../../../domain/operator/review-numbers.ts'
import { activeReviewNumbers } from '../../../domain/policy/review-number.ts'
import { done, html } from '../answers.ts'
import { field } from '../form-fields.ts'
import type { PageContext } from '../page-context.ts'
import { orAgain, type PageHandler } from '../page-handler.ts'
import { type ReviewNumberForm, type ReviewNumbersModel, reviewNumbersPage } from './page.tsx'

export function reviewNumberRoutes({ get, post, ports, settings }: PageHandler): void {
  const { contacts } = settings
  const { brands, policy, secrets, now, isVerifiedNumber } = ports

  get('/admin/review-numbers', (_, pageContext) => shown(pageContext))
  post('/admin/review-numbers', ({ form, by }, pageContext) => {
    const asked: ReviewNumberForm = {
      phone: field(form, 'phone'),
      brand: field(form, 'brand'),
      until: field(form, 'until'),
    }
    return orAgain(
      async () =>
        shown(pageContext, {
          code: await addReviewNumber({ ...by, brands, contacts, secrets, isVerifiedNumber }, asked),
        }),
      (problem) => shown(pageContext, { form: asked, problem }, 409),
    )
  })
  post('/admin/review-numbers/remove', async ({ visit, form, by }) => {
    const removed = await removeReviewNumberOf(by, [field(form, 'subject')], field(form, 'brand'))
    return done(
      visit,
      '/admin/review-numbers',
      `Removed the review number ${removed.masked} of brand ${removed.brandSlug}.`,
    )
  })

  async function shown(
    pageContext: PageContext,
    part: Partial<Pick<ReviewNumbersModel, 'form' | 'code' | 'problem'>> = {},
    status = 200,
  ): Promise<Response> {
    const [{ reviewNumbers }, all] = await Promise.all([policy.rows(), brands.list()])
    const numbers = activeReviewNumbers(reviewNumbers, now())
    const empty = { form: { phone: '', brand: '', until: '' }, code: null, problem: null }
    const model = { numbers, brands: all.map(({ slug }) => slug), ...empty, ...part }
    return html(reviewNumbersPage({ ...pageContext, reviewNumbers: numbers.length }, model), status)
  }
}
