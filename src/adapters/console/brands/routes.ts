import { brandEntries, brandPut, freshBrand, given } from '../../../domain/operator/brands.ts'
import type { Entered } from '../../../domain/operator/fields.ts'
import { type BrandWithTexts, brandStatuses, mayBecome, nameKey } from '../../../domain/texts/brand.ts'
import { previewOf } from '../../../domain/texts/preview.ts'
import { otpTemplateOf } from '../../../domain/texts/templates.ts'
import { html } from '../answers.ts'
import { enteredIn } from '../form-access.ts'
import { field } from '../form-fields.ts'
import type { PageContext } from '../page-context.ts'
import type { PageHandler } from '../page-handler.ts'
import { previewFragment } from '../texts/messages.tsx'
import { brandPage, brandsPage, exampleName } from './page.tsx'

export function brandRoutes({ get, post, ports, settings, missing }: PageHandler): void {
  get('/admin/brands', async (_, pageContext) => html(brandsPage(pageContext, await ports.brands.list())))
  get('/admin/brands/new', (_, pageContext) => brandForm(pageContext, null))
  get('/admin/brands/:slug', async ({ params: { slug = '' } }, pageContext) => {
    const isNew = pageContext.rejected?.values.mustBeNew === true
    const brand = isNew ? null : await ports.brands.bySlug(nameKey(slug))
    return brand === undefined ? missing(pageContext, 'Brand not found') : brandForm(pageContext, brand)
  })
  post('/admin/preview', async ({ form }) => {
    const brand = await ports.brands.bySlug(field(form, 'slug'))
    return html(previewFragment(previewIn(enteredIn(brandPut, form), brand?.texts)))
  })

  function brandForm(pageContext: PageContext, brand: BrandWithTexts | null): Response {
    const { rejected } = pageContext
    const entered = rejected?.action === brandPut.name ? rejected.values : brand && brandEntries(brand)
    const nextStatuses = brandStatuses.filter((status) => brand && mayBecome(brand.status, status))
    return html(
      brandPage(pageContext, { brand, nextStatuses, preview: previewIn(entered ?? {}, brand?.texts) }),
    )
  }

  /** A code SMS of the brand as in the form. */
  function previewIn(entered: Entered, texts = freshBrand('').texts) {
    const { slug: _, mustBeNew: __, ...asked } = brandPut.read(entered)
    const shown = { ...freshBrand('preview'), ...given(asked), texts }
    const brand = { ...shown, displayName: shown.displayName || exampleName }
    return previewOf(brand, otpTemplateOf({}), {}, settings)
  }
}
