/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact'
import { renderToString } from 'preact-render-to-string'
import { counted } from '../../../domain/ground/format.ts'
import { brandTemplate } from '../../../domain/operator/brands.ts'
import { type Brand, registrationOf } from '../../../domain/texts/brand.ts'
import { registeredTarget } from '../../../domain/texts/brand-texts.ts'
import type { Preview } from '../../../domain/texts/preview.ts'
import { Field, Marked, rich } from '../../pages/components.tsx'
import { ActionButton, ActionForm } from '../action-form.tsx'
import { Drawing } from '../components.tsx'

// Parts of the pages of a brand and of its texts.

/** For preview.js. */
export function previewFragment(preview: Preview): string {
  return renderToString(<PreviewMessage preview={preview} />)
}

/** preview.js replaces its content. */
export function PreviewSlot({ children }: { children: ComponentChildren }) {
  return (
    <>
      <div data-preview-place>{children}</div>
      <p class="sr-only" role="status" data-preview-said />
    </>
  )
}

/** Sample values. preview.js shows them. */
export function SampleValues({ of: key, variables }: { of: string; variables: Preview['variables'] }) {
  return (
    <fieldset class="values" hidden>
      <legend class="sr-only">Sample values for {key}</legend>
      {variables.map(({ name, value, description }) => (
        <Field
          key={name}
          id={`${key}-${name}`}
          label={<code>{name}</code>}
          name={`var.${name}`}
          value={value}
          hint={description}
        />
      ))}
      {variables.length === 0 && <p class="hint">This text has no variables other than the brand’s.</p>}
    </fieldset>
  )
}

/** @param children below the message */
export function PreviewMessage({ preview, children }: { preview: Preview; children?: ComponentChildren }) {
  const { text, problem, segments, isOwn, lang } = preview
  if (text === null) {
    return (
      <div class="reading" data-summary={problem ?? ''}>
        <p class="unreadable">{rich(problem ?? 'No preview with these values.')}</p>
      </div>
    )
  }
  const size = segments && sizeOf(segments, text)
  return (
    <div class="reading" data-summary={size?.summary ?? ''}>
      <div class="handset">
        <p class="handset-sender">Text message</p>
        <div class="bubble">
          <p class="text" dir="auto">
            <Marked text={text} code={preview.variables.find(({ name }) => name === 'otp')?.value} />
          </p>
        </div>
      </div>
      {size && (
        <div class="cost">
          <SegmentBar {...size} />
          <p class="cost-size">{size.summary}</p>
          <p class="hint">
            {isOwn ? 'Text of the brand' : 'Built-in text'} in {lang}. Providers bill{' '}
            {counted(size.count, 'segment')}.
            <LongCharacters text={text} encoding={size.encoding} />
          </p>
        </div>
      )}
      {children}
    </div>
  )
}

/** Characters of a single message, and of each segment of a longer one, which has a header. */
const capacities = { 'GSM-7': { single: 160, part: 153 }, 'UCS-2': { single: 70, part: 67 } } as const

function sizeOf({ count, encoding }: NonNullable<Preview['segments']>, text: string) {
  const { single, part } = capacities[encoding]
  const capacity = count === 1 ? single : count * part
  const used = lengthOf(text, encoding)
  const summary = `${count} ${count === 1 ? 'segment' : 'segments'} · ${encoding} · ${used} of ${capacity} characters`
  return { count, encoding, used, capacity, summary }
}

function lengthOf(text: string, encoding: 'GSM-7' | 'UCS-2'): number {
  return encoding === 'UCS-2' ? text.length : text.length + (text.match(extensionCharacters)?.length ?? 0)
}

/** The GSM-7 extension. Its characters count as two. */
const extensionCharacters = /[\^{}\\[~\]|€\f]/g

function SegmentBar({ count, used, capacity }: ReturnType<typeof sizeOf>) {
  const width = 100 / count
  const gap = count === 1 ? 0 : Math.min(1, width / 4)
  const filled = Math.min(1, used / capacity) * count
  return (
    <Drawing class="segments" viewBox="0 0 100 4">
      {Array.from({ length: count }, (_, index) => {
        const share = Math.max(0, Math.min(1, filled - index))
        const box = { x: index * width, y: 0, height: 4 }
        return (
          <g key={index} class={count > 1 ? 'several' : undefined}>
            <rect class="segment-room" {...box} width={width - gap} />
            <rect class="segment-used" {...box} width={(width - gap) * share} />
          </g>
        )
      })}
    </Drawing>
  )
}

const gsm7 = /[@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&'()*+,\-./0-9:;<=>?¡A-ZÄÖÑÜ§¿a-zäöñüà^{}\\[~\]|€\f]/

function LongCharacters({ text, encoding }: { text: string; encoding: 'GSM-7' | 'UCS-2' }) {
  if (encoding === 'GSM-7') {
    const doubled = [...new Set(text.match(extensionCharacters) ?? [])]
    if (doubled.length === 0) return null
    return (
      <>
        {' '}
        <bdi>{doubled.join(' ')}</bdi> {doubled.length === 1 ? 'counts' : 'count'} as two characters.
      </>
    )
  }
  const all = [...new Set(text)].filter((character) => !gsm7.test(character))
  if (all.length === 0) return null
  return (
    <>
      {' '}
      <bdi>{all.slice(0, 5).join(' ')}</bdi>
      {all.length > 5 ? ' and others are' : all.length === 1 ? ' is' : ' are'} not in GSM-7, so a segment has
      at most 70 characters instead of 160.
    </>
  )
}

interface RegistrationProps {
  readonly brand: Brand
  /** As `registrationKeyOf` returns it. */
  readonly of: string
}

export function Registration({ brand, of: key }: RegistrationProps) {
  const { id, ids, senderId, maxLength } = registrationOf(brand, key)
  const own = Object.entries(ids)
  const registered = [...(id === null ? [] : [id]), ...own.map((each) => each.join('='))]
  const { templateKey, lang } = registeredTarget(key)
  const target = { slug: brand.slug, key: templateKey, ...(lang && { lang }) }
  const summary = [
    id === null ? '' : `ID ${id}`,
    own.length === 0 ? '' : own.map(([provider, its]) => `${provider} ${its}`).join(', '),
    senderId === null ? '' : `sender ${senderId}`,
  ].filter(Boolean)
  return (
    <details class="fold">
      <summary>
        Registration <span class="hint">{summary.join(' · ') || 'not registered'}</span>
      </summary>
      <div class="folded">
        {!brand.dltEnabled && (
          <p class="hint">These values take effect when the brand uses the registered-template route.</p>
        )}
        <ActionForm
          of={brandTemplate}
          id={key}
          start={{ ids: registered, senderId: senderId ?? '', maxLength: String(maxLength ?? '') }}
          hidden={{ ...target, replaces: '1' }}
          without={['lang', 'remove']}
          submit="Save registration"
          kind="plain"
        />
        {summary.length > 0 && (
          <ActionButton
            of={brandTemplate}
            with={{ ...target, remove: true }}
            kind="danger"
            confirm={`Remove the registration of ${key} for ${brand.displayName}?`}
          >
            Remove registration
          </ActionButton>
        )}
      </div>
    </details>
  )
}

export function pathOf({ slug }: Pick<Brand, 'slug'>): string {
  return `/admin/brands/${encodeURIComponent(slug)}`
}
