/** @jsxImportSource preact */
import { ConsolePage, document, Gate, LinkButton } from '../components.tsx'
import type { PageContext, ProblemModel } from '../models.ts'

/** Why a page can't be shown, or a form was not taken; without a shell, to one who has no session. */
export function problemPage(pageContext: PageContext | null, model: ProblemModel): string {
  const words = (
    <div class="problem">
      <p class="status">{model.status}</p>
      <p class="lines">{model.text}</p>
      {pageContext ? (
        <LinkButton href="/admin">Back to the overview</LinkButton>
      ) : model.hasLogin ? (
        <LinkButton href="/admin/login">Sign in</LinkButton>
      ) : null}
    </div>
  )
  if (pageContext) {
    return document(
      { title: model.title },
      <ConsolePage pageContext={pageContext} section={null} title={model.title}>
        {words}
      </ConsolePage>,
    )
  }
  return document(
    { title: model.title },
    <Gate>
      <h1>{model.title}</h1>
      {words}
    </Gate>,
  )
}
