import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { isAlias, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument, visit } from 'yaml'
import { parsePrices } from '../adapters/prices/csv.ts'
import { isObject } from '../domain/ground/body.ts'
import { InvalidInput } from '../domain/ground/operator-error.ts'
import {
  type Desired,
  type DesiredEntry,
  keyOf,
  type Section,
  sameEntry,
  sections,
} from '../domain/operator/configuration.ts'
import { enteredIn, type Fields } from '../domain/operator/fields.ts'

// Reads the configuration file, and says each fault with its line.

const partNames = [...sections.map(({ name }) => name), 'prices', 'pricesFile'].join(', ')

/**
 * Reads a YAML or JSON file (design D57). A field of long text can be the name of a file beside it: `textFile` for `text`.
 * @param providers the names that prices can have
 * @param text undefined: that of the file
 * @throws InvalidInput with each fault and its line
 */
export function readConfigurationFile(
  file: string,
  providers: readonly string[],
  text = contentOf(file),
): Desired {
  const counter = new LineCounter()
  const document = parseDocument(text, { lineCounter: counter, uniqueKeys: true, merge: true })
  // As it is written: the number of +4479 or of a long identifier is another one.
  visit(document, {
    Scalar: (_, node) => {
      if (typeof node.value === 'number') node.value = node.source
    },
  })
  const lineOf = (node: unknown) => counter.linePos((isNode(node) && node.range?.[0]) || 0).line
  const faults = document.errors.map(
    ({ linePos, message }) => `line ${linePos?.[0].line ?? 1}: ${message.split(' at line')[0]}`,
  )
  const noting = <Result>(line: number, read: () => Result): Result | undefined => {
    try {
      return read()
    } catch (error) {
      // A ReferenceError: an alias is unknown, or has more than fits into memory.
      if (!(error instanceof InvalidInput || error instanceof ReferenceError)) throw error
      faults.push(`line ${line}: ${error.message}`)
      return undefined
    }
  }
  // As commands read a file: without the last line break.
  const beside = (name: unknown) => contentOf(resolve(dirname(file), String(name))).replace(/\r?\n$/, '')
  const found = new Map<Section, readonly DesiredEntry[]>()
  let prices: Desired['prices']
  const { contents } = document
  if (contents !== null && !isMap(contents) && faults.length === 0)
    faults.push('line 1: the file must be a map of lists.')
  for (const { key, value } of isMap(contents) ? contents.items : []) {
    const name = String(key)
    noting(lineOf(key), () => {
      const section = sections.find((each) => each.name === name)
      if (name === 'prices' || name === 'pricesFile') {
        if (!isScalar(value)) throw new InvalidInput(`${name} must be text, not a list or a map.`)
        if (prices !== undefined) throw new InvalidInput('The file has both prices and pricesFile.')
        prices = pricesIn(name === 'prices' ? String(value.value ?? '') : beside(value.value))
      } else if (!section)
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

  /** Empty: none. */
  function pricesIn(text: string): Desired['prices'] {
    if (text.trim() === '') return { text: '', rows: [] }
    const { rows, problems } = parsePrices(text, providers)
    if (problems.length > 0) throw new InvalidInput(`prices: ${problems.join(' ')}`)
    return { text, rows }
  }

  function entriesOf(section: Section, items: readonly unknown[]): readonly DesiredEntry[] {
    const lines = new Map<string, number>()
    return items.flatMap((item) => {
      const line = lineOf(item)
      const read = () => {
        const entry: unknown = isAlias(item) || isMap(item) ? item.toJS(document) : undefined
        if (!isObject(entry)) throw new InvalidInput(`${section.name}: an entry must be a map of fields.`)
        const { fields } = section
        const entered = enteredIn(withFiles(entry, fields), fields, section.name)
        section.set.read(entered)
        const key = keyOf(section, entered)
        const other = lines.get(key)
        if (other !== undefined) throw new InvalidInput(sameEntry(section, other))
        lines.set(key, line)
        return { line, entered }
      }
      return noting(line, read) ?? []
    })
  }

  function withFiles(entry: Readonly<Record<string, unknown>>, fields: Fields) {
    const read = Object.entries(entry).map(([name, value]) => {
      const own = name.replace(/File$/, '')
      if (fields[name] || !fields[own]?.isFile) return [name, value]
      if (Object.hasOwn(entry, own)) throw new InvalidInput(`The entry has both ${own} and ${name}.`)
      return [own, beside(value)]
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
