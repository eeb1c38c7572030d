/** @jsxImportSource preact */
import { Fragment } from 'preact'
import { rich } from '../../pages/components.tsx'
import { type ApiField, code, type Shape } from './shape.ts'

/** Which fields have a mark: the required ones of what a reader sends, the optional ones of what otpost sends. */
export type Mark = 'required' | 'optional'

export function Fields({ fields, mark }: { fields: readonly ApiField[]; mark: Mark }) {
  if (fields.length === 0) return null
  return (
    <dl class="fields">
      {fields.toSorted(requiredFirst).map(({ name, isRequired, type, description, limits, shape }) => (
        <div key={name}>
          <dt>
            {/* In a request, null counts as absent. */}
            <code>{name}</code>{' '}
            <span class="type">{mark === 'required' ? type.replace(/ or null$/, '') : type}</span>{' '}
            {isRequired === (mark === 'required') && <span class={mark}>{mark}</span>}
          </dt>
          <dd>
            {description && <p>{rich(description)}</p>}
            {limits.length > 0 && <p class="hint">{rich(limits.join(' · '))}</p>}
            {shape && <ShapeOf {...shape} mark={mark} />}
          </dd>
        </div>
      ))}
    </dl>
  )
}

export function ShapeOf({ fields, unions, mark }: Shape & { mark: Mark }) {
  const isAbsent = ({ isRequired, type }: ApiField) => !isRequired && type === 'null'
  const isListed = ({ name }: ApiField) => fields.some((field) => field.name === name)
  return (
    <>
      <Fields mark={mark} fields={fields.filter((field) => !isAbsent(field))} />
      <Names title="Must be absent or null" of={fields.filter(isAbsent).map(({ name }) => name)} />
      {unions.map((alternatives) => {
        // Such a union only says which fields are required.
        if (alternatives.every((alternative) => alternative.fields.every(isListed))) {
          return (
            <Names key={alternatives} title="Required, one of" of={alternatives.flatMap(requiredPaths)} />
          )
        }
        return (
          <Fragment key={alternatives}>
            <p>One of these:</p>
            <ul class="union">
              {alternatives.map(({ title, description, ...shape }) => (
                <li key={title}>
                  {title && <h5>{title}</h5>}
                  {description && <p>{rich(description)}</p>}
                  <ShapeOf {...shape} mark={mark} />
                </li>
              ))}
            </ul>
          </Fragment>
        )
      })}
    </>
  )
}

/** Nothing for an empty list. */
function Names({ title, of }: { title: string; of: readonly string[] }) {
  if (of.length === 0) return null
  return <p class="hint">{rich(`${title}: ${of.map(code).join(', ')}`)}</p>
}

function requiredFirst(one: ApiField, other: ApiField): number {
  return Number(other.isRequired) - Number(one.isRequired)
}

function requiredPaths({ fields }: Shape): string[] {
  return fields
    .filter(({ isRequired }) => isRequired)
    .flatMap(({ name, shape }) => (shape ? requiredPaths(shape).map((path) => `${name}.${path}`) : [name]))
}
