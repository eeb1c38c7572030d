import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { isMap, isNode, isScalar, isSeq, LineCounter, parseDocument } from 'yaml'
import { isObject } from '../domain/ground/body.ts'
import { InvalidInput } from '../domain/ground/operator-error.ts'
import {
  type Desired,
  type DesiredEntry,
  keyOf,
  type Section,
  sections,
} from '../domain/operator/configuration.ts'
import { enteredIn, type Fields } from '../domain/operator/fields.ts'

// Reads the configuration file, and says each fault with its line.

const partNames = [...sections.map(({ name }) => name), 'prices', 'pricesFile'].join(', ')

/**
 * Reads a YAML or JSON file (design D57). A field of long text can be the name of a file beside it: `textFile` for `text`.
 * @param text undefined: that of the file
 * @throws InvalidInput with each fault and its line
 */
export function readConfigurationFile(file: string, text = contentOf(file)): Desired {
  const counter = new LineCounter()
  const document = parseDocument(text, { lineCounter: counter, uniqueKeys: true })
  const lineOf = (node: unknown) => counter.linePos((isNode(node) && node.range?.[0]) || 0).line
  const faults = document.errors.map(
    ({ linePos, message }) => `line ${linePos?.[0].line ?? 1}: ${message.split(' at line')[0]}`,
  )
  const noting = <Result>(line: number, read: () => Result): Result | undefined => {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof InvalidInput)) throw error
      faults.push(`line ${line}: ${error.message}`)
      return undefined
    }
  }
  const beside = (name: unknown) => contentOf(resolve(dirname(file), String(name)))
  const found = new Map<Section, readonly DesiredEntry[]>()
  let prices: string | undefined
  const { contents } = document
  if (contents !== null && !isMap(contents) && faults.length === 0)
    faults.push('line 1: the file must be a map of lists.')
  for (const { key, value } of isMap(contents) ? contents.items : []) {
    const name = isScalar(key) ? String(key.value) : ''
    noting(lineOf(key), () => {
      const section = sections.find((each) => each.name === name)
      if (name === 'prices' && isScalar(value)) prices = String(value.value)
      else if (name === 'pricesFile' && isScalar(value)) prices = beside(value.value)
      else if (!section)
        throw new InvalidInput(`${name} is no part of the configuration. The parts are ${partNames}.`)
      else if (!isSeq(value)) throw new InvalidInput(`${name} must be a list.`)
      else found.set(section, entriesOf(section, value.items))
    })
  }
  if (faults.length > 0)
    throw new InvalidInput(
      `${file} has ${faults.length === 1 ? 'a fault' : `${faults.length} faults`}:\n${faults.join('\n')}`,
    )
  // In any order in the file.
  const ordered = sections.flatMap((section) => {
    const entries = found.get(section)
    return entries ? [[section, entries] as const] : []
  })
  return { sections: new Map(ordered), prices }

  function entriesOf(section: Section, items: readonly unknown[]): readonly DesiredEntry[] {
    const lines = new Map<string, number>()
    return items.flatMap((item) => {
      const line = lineOf(item)
      const read = () => {
        const entry: unknown = isMap(item) ? item.toJS(document) : undefined
        if (!isObject(entry)) throw new InvalidInput(`${section.name}: an entry must be a map of fields.`)
        const { fields } = section.set
        const entered = enteredIn(withFiles(entry, fields), fields)
        section.set.read(entered)
        const key = keyOf(section, entered)
        const other = lines.get(key)
        if (other !== undefined)
          throw new InvalidInput(`${section.name}: the same entry as in line ${other}.`)
        lines.set(key, line)
        return { line, entered }
      }
      return noting(line, read) ?? []
    })
  }

  function withFiles(entry: Readonly<Record<string, unknown>>, fields: Fields) {
    const read = Object.entries(entry).map(([name, value]) => {
      const own = name.replace(/File$/, '')
      return own !== name && fields[own]?.isFile ? [own, beside(value)] : [name, value]
    })
    return Object.fromEntries(read) as Record<string, unknown>
  }
}

/** @throws InvalidInput */
function contentOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${error.code})` : ''
    throw new InvalidInput(`${file} cannot be read${code}.`)
  }
}
