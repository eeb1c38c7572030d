/** @jsxImportSource preact */

import { LinkButton, rich } from '../pages/components.tsx'
import { consolePage, signedOutPage } from './components.tsx'
import type { PageContext } from './page-context.ts'

interface ProblemModel {
  readonly status: number
  readonly title: string
  readonly text: string
  readonly hasLogin?: boolean
}

export function problemPage(pageContext: PageContext | null, model: ProblemModel): string {
  const words = (
    <div class="problem">
      <p class="status">{model.status}</p>
      <p class="lines">{rich(model.text)}</p>
      {pageContext ? (
        <LinkButton href="/admin">Back to the overview</LinkButton>
      ) : model.hasLogin ? (
        <LinkButton href="/admin/login">Sign in</LinkButton>
      ) : null}
    </div>
  )
  return pageContext
    ? consolePage(pageContext, { title: model.title, section: null }, words)
    : signedOutPage(model.title, words)
}
