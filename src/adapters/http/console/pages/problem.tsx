/** @jsxImportSource preact */
import { ConsolePage, document, Gate, LinkButton } from '../components.tsx'
import type { ProblemModel, Shell } from '../models.ts'

/** Why a page can't be shown, or a form was not taken; without a shell, to one who has no session. */
export function problemPage(shell: Shell | null, model: ProblemModel): string {
  const words = (
    <div class="problem">
      <p class="status">{model.status}</p>
      <p class="lines">{model.text}</p>
      {shell ? (
        <LinkButton href="/admin">Back to the overview</LinkButton>
      ) : model.hasLogin ? (
        <LinkButton href="/admin/login">Sign in</LinkButton>
      ) : null}
    </div>
  )
  if (shell) {
    return document(
      { title: model.title },
      <ConsolePage shell={shell} section={null} title={model.title}>
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
