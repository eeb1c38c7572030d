/** @jsxImportSource preact */
import { curl, Snippet } from '../../pages/components.tsx'
import type { ApiContent, ApiOperation, Named, Response } from './description.ts'

export interface ApiCall {
  /** Undefined for an event. */
  readonly method: string | undefined
  readonly path: string
  readonly operation: ApiOperation
}

interface Example {
  readonly summary: string
  readonly title: string
  readonly text: string
}

interface ExamplesProps {
  readonly call: ApiCall
  readonly origin: string
  /** Only the first request and its response. */
  readonly isBrief?: boolean
}

export function Examples({ call, origin, isBrief = false }: ExamplesProps) {
  const most = isBrief ? 1 : undefined
  return (
    <div class="examples">
      <Snippets examples={requestsOf(call, origin).slice(0, most)} />
      <Snippets examples={responsesOf(call).slice(0, most)} />
    </div>
  )
}

/** The first one is open. */
function Snippets({ examples }: { examples: readonly Example[] }) {
  return examples.map(({ summary, title, text }, index) => (
    <details key={summary} open={index === 0}>
      <summary>{summary}</summary>
      <Snippet title={title} text={text} />
    </details>
  ))
}

function requestsOf({ method, path, operation: { requestBody } }: ApiCall, origin: string): Example[] {
  if (!requestBody) return [{ summary: 'Request', title: 'curl', text: `curl -s ${origin}${path}` }]
  return examplesOf(requestBody).map(([, { summary, value }]) =>
    method
      ? { summary, title: 'curl', text: curl(origin + path, value, 2) }
      : { summary, title: 'Body', text: indented(value) },
  )
}

/** Errors only if they have fields of their own. */
function responsesOf({ operation: { responses } }: ApiCall): Example[] {
  return Object.entries(responses).flatMap(([status, response]) => {
    const summary = `Response ${status}`
    const text = contentOf(response)?.example
    if (text !== undefined) return [{ summary, title: 'Text', text }]
    const examples = examplesOf(response).filter(([, { value }]) => !isPlainError(value))
    const isOnly = examples.length === 1 && !isError(response)
    return examples.map(([, example]) => ({
      summary: isOnly ? summary : `${summary}: ${example.summary}`,
      title: 'JSON',
      text: indented(example.value),
    }))
  })
}

/** Of every error. */
export const errorFields = ['success', 'error', 'message', 'requestId']

function isPlainError(value: object): boolean {
  return 'error' in value && Object.keys(value).every((name) => errorFields.includes(name))
}

export function isError(response: Response): boolean {
  const examples = examplesOf(response)
  return examples.length > 0 && examples.every(([, { value }]) => 'error' in value)
}

type Part = { readonly content?: Named<ApiContent> } | undefined

export function contentOf(part: Part): ApiContent | undefined {
  return Object.values(part?.content ?? {})[0]
}

export function examplesOf(part: Part) {
  return Object.entries(contentOf(part)?.examples ?? {})
}

function indented(value: object): string {
  return JSON.stringify(value, null, 2)
}
