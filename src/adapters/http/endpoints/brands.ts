import { Type } from '@sinclair/typebox'
import { anyGet, get, success } from '../endpoint.ts'
import { succeeded } from '../schema.ts'

export const brands = succeeded(
  'Brands',
  { brands: Type.Array(Type.Object({ brandId: Type.String(), displayName: Type.String() })) },
  'The active brands.',
)

export const listBrands = get({
  path: '/platform/brands',
  tag: 'Onboarding',
  id: 'listBrands',
  client: 'brands',
  summary: 'Active brands',
  description: 'The brands that can send messages.',
  answers: { 200: success(brands, { brands: [{ brandId: 'acme', displayName: 'Acme' }] }) },
  failures: anyGet,
  answer: async ({ ports }) => {
    const active = (await ports.brands.list()).filter(({ status }) => status === 'active')
    return { success: true, brands: active.map(({ slug, displayName }) => ({ brandId: slug, displayName })) }
  },
})
