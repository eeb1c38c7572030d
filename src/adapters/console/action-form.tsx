/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact'
import { useContext } from 'preact/hooks'
import { capitalized } from '../../domain/ground/format.ts'
import type { Action } from '../../domain/operator/action.ts'
import { actions } from '../../domain/operator/actions.ts'
import type { Field as ActionField, Entered, Written } from '../../domain/operator/fields.ts'
import {
  Button,
  Choice,
  Field,
  FieldGroup,
  FileField,
  type Options,
  rich,
  Select,
  type Suggestions,
} from '../pages/components.tsx'
import { Form, FormContext, type FormProps } from './components.tsx'
import { actionsByPath, filled, patternOf } from './form-access.ts'

type Formed = Pick<Action<never>, 'name' | 'verb' | 'does' | 'fields' | 'form' | 'hasDryRun'>

function pathOf({ name, form }: Formed): string {
  if (!form) throw new Error(`${name} has no form.`)
  return form.path
}

interface ActionFormProps extends Pick<FormProps, 'kind' | 'confirm' | 'class' | 'previewAt'> {
  /** Several have the same path and fields. The operator chooses one. */
  readonly of: Formed | readonly [Formed, ...Formed[]]
  /** What the controls have at first, by field. */
  readonly start?: Entered | undefined
  /** The values that a field can have, with their words. A field without any is left out. */
  readonly options?: Readonly<Record<string, Options>>
  /** What the browser suggests, by field. */
  readonly known?: Readonly<Record<string, Suggestions>>
  readonly labels?: Readonly<Record<string, ComponentChildren>>
  /** Fields with these values, which are not shown. */
  readonly hidden?: Readonly<Record<string, string>>
  readonly without?: readonly string[]
  /** Before the ids of its controls, if the page has several of these forms. */
  readonly id?: string
  readonly submit: ComponentChildren
  /** After the controls. */
  readonly children?: ComponentChildren
}

/** The controls of an action. After a rejection they have what was entered. */
export function ActionForm({
  of,
  start = {},
  options = {},
  labels = {},
  known = {},
  hidden = {},
  without = [],
  id = 'field',
  submit,
  children,
  ...look
}: ActionFormProps) {
  const { rejected } = useContext(FormContext)
  const all = [of].flat()
  const isSame = Object.entries(hidden).every(([name, value]) => String(rejected?.values[name]) === value)
  const again = all.find(({ name }) => name === rejected?.action && isSame)
  const [action = again] = all
  if (!action) return null
  const values = (again && rejected?.values) ?? start
  const was = action.form?.isPartial && { was: (again && rejected?.was) ?? JSON.stringify(start) }
  const shown = Object.entries(action.fields).filter(([name]) => !(name in hidden) && !without.includes(name))
  const folds = [...Map.groupBy(shown, ([, { fold }]) => fold)]
  const isOpen = ([name]: (typeof shown)[number]) =>
    again !== undefined || [values[name]].flat().some(Boolean)
  const controls = (some: typeof shown) =>
    [...Map.groupBy(some, ([name, { legend = name }]) => legend)].map(([legend, fields]) => {
      const inside = fields.map(([name, field]) => (
        <Control
          key={name}
          id={id}
          name={name}
          field={field}
          label={labels[name] ?? field.label}
          options={options[name] ?? field.choices}
          known={known[name]}
          written={values[name] ?? field.byDefault}
        />
      ))
      return fields[0]?.[1].legend === undefined ? inside : <FieldGroup legend={legend}>{inside}</FieldGroup>
    })
  return (
    <Form
      action={filled(pathOf(action), hidden)}
      hidden={{ ...hidden, ...was }}
      submit={submit}
      buttons={
        action.hasDryRun && (
          <Button name="foretell" value="1" action={`${filled(pathOf(action), hidden)}#${id}-foretold`}>
            Show what it would do
          </Button>
        )
      }
      {...look}
    >
      {all.length > 1 && (
        <Select
          label="Action"
          name="action"
          value={(again ?? action).verb}
          options={Object.fromEntries(all.map(({ verb, does }) => [verb, `${verb}: ${does}`]))}
        />
      )}
      {folds.map(([title, some]) =>
        title === undefined ? (
          controls(some)
        ) : (
          <details key={title} class="fold" open={some.some(isOpen)}>
            <summary>{title}</summary>
            <div class="folded">{controls(some)}</div>
          </details>
        ),
      )}
      {children}
      {again && rejected && rejected.foretold.length > 0 && (
        <div class="notice" id={`${id}-foretold`} tabIndex={-1} data-focus>
          <ul class="problems">
            {rejected.foretold.map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
        </div>
      )}
    </Form>
  )
}

interface ControlProps {
  readonly id: string
  readonly name: string
  readonly field: ActionField
  readonly label: ComponentChildren
  readonly options: Options | undefined
  readonly known: Suggestions | undefined
  readonly written: Written
}

function Control({ id, name, field, label, options, known, written }: ControlProps) {
  const { kind, isRequired, isRequiredInForm, isProse, placeholder, max, inputType, rows } = field
  // Where the page has the options, nothing is to be written.
  const isChosen = options !== undefined && field.choices === undefined
  const shared = { label, name, id: `${id}-${name}`, hint: isChosen ? undefined : hintOf(field) }
  if (kind === 'flag') return <Choice {...shared} checked={field.read(written) === true} />
  const values = [written ?? ''].flat().map(String)
  if (options && Object.keys(options).length === 0) return null
  if (options && kind === 'list') {
    const boxes = Object.entries(options).map(([value, words]) => (
      <Choice
        key={value}
        id={`${name}-${value}`}
        label={<bdi>{rich(String(words))}</bdi>}
        name={name}
        value={value}
        checked={values.includes(value)}
      />
    ))
    if (field.legend !== undefined) return boxes
    return (
      <FieldGroup legend={label}>
        {boxes}
        {field.hint !== undefined && <p class="hint">{rich(field.hint)}</p>}
      </FieldGroup>
    )
  }
  const value = values.join(rows ? '\n' : ',')
  if (options) {
    const none = isRequired || field.byDefault !== undefined ? {} : { '': field.none ?? 'none' }
    return <Select {...shared} value={value} options={{ ...none, ...options }} />
  }
  // A short one is pasted.
  if (field.isFile && max === undefined)
    return <FileField {...shared} value={value} placeholder={placeholder} />
  return (
    <Field
      {...shared}
      required={isRequired || isRequiredInForm === true}
      type={inputType}
      {...(rows && { rows: Math.max(rows, values.length) })}
      maxLength={max}
      isCode={!isProse}
      value={value}
      placeholder={placeholder}
      known={known}
    />
  )
}

/** `help` as a sentence, unless there is a hint. */
function hintOf({ help, hint }: ActionField): string | undefined {
  if (hint === '') return undefined
  return hint ?? `${capitalized(help)}.`
}

export interface ActionButtonProps {
  readonly of: Formed
  /** Its fields. */
  readonly with: Entered
  readonly confirm?: string | undefined
  readonly kind?: 'plain' | 'danger'
  /** The control of its form to go to: the button shows what it would do, and does nothing. */
  readonly foretellsAt?: string
  readonly children: ComponentChildren
}

/** A small button that does it with these fields. */
export function ActionButton({
  of: action,
  with: entered,
  confirm,
  kind = 'plain',
  foretellsAt: anchor,
  children,
}: ActionButtonProps) {
  const isShared = (actionsByPath.get(patternOf(pathOf(action)))?.length ?? 0) > 1
  const all = {
    ...(isShared && { action: action.verb }),
    ...(anchor !== undefined && { foretell: '1' }),
    ...entered,
  }
  const fields = Object.entries(all).flatMap(([name, written]) =>
    [written ?? []].flat().map((each): [string, string] => [name, String(each)]),
  )
  return (
    <Form action={filled(pathOf(action), entered)} anchor={anchor} confirm={confirm} fields={fields}>
      <Button kind={kind} small>
        {children}
      </Button>
    </Form>
  )
}

interface ActionsBesideProps {
  /** What the list has, such as `provider`. */
  readonly thing: string
  readonly name: string
  /** Its states, such as `paused`. */
  readonly states: readonly string[]
}

/** The forms of the actions that are beside each thing of a list. Their field `name` is its name. */
export function ActionsBeside({ thing, name, states }: ActionsBesideProps) {
  const isBeside = ({ form }: Formed) =>
    form?.beside?.thing === thing && (form.beside.while === undefined || states.includes(form.beside.while))
  return (
    <>
      {actions.filter(isBeside).map((action) => (
        <ActionForm
          key={action.name}
          of={action}
          hidden={{ name }}
          id={`${action.verb}-${name}`}
          class="inline"
          kind="plain"
          submit={
            <>
              {capitalized(action.verb)}
              <span class="sr-only"> {name}</span>
            </>
          }
        />
      ))}
    </>
  )
}
