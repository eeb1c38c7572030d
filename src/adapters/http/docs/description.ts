/** What the page reads of an OpenAPI document, as openapi.ts writes it. */
export interface ApiDescription {
  readonly info: { readonly version: string; readonly summary: string; readonly description: string }
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: Named<Named<ApiOperation>>
  readonly webhooks: Named<Named<ApiOperation>>
  readonly components: {
    readonly schemas: Named<Schema>
    readonly headers: Named<Header>
    readonly securitySchemes: Named<{ readonly scheme: string; readonly description: string }>
  }
}

export type Named<T> = Readonly<Record<string, T>>

export interface ApiOperation {
  readonly tags: readonly string[]
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly security?: readonly Named<readonly string[]>[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Named<ApiContent> }
  readonly responses: Named<Response>
}

export interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly description: string
  readonly schema: Schema
}

export interface Response {
  readonly description: string
  readonly headers?: Named<{ readonly $ref: string }>
  readonly content?: Named<ApiContent>
}

export interface ApiContent {
  readonly schema: Schema
  readonly example?: string
  readonly examples?: Named<{ readonly summary: string; readonly value: object }>
}

interface Header {
  readonly description: string
  readonly schema: Schema
}

export interface Schema {
  readonly title?: string
  readonly description?: string
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly pattern?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly default?: unknown
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly items?: Schema
  readonly properties?: Named<Schema>
  readonly required?: readonly string[]
  readonly anyOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
}
