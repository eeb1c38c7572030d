import Papa from 'papaparse'
import { type CheckedPrices, checkPrices, type PriceRecord } from '../../domain/money/price-import.ts'

const mostBytes = 20_000_000
const mostLines = 200_000
const mostCharacters = 1000

/**
 * Reads and checks the text of a price file (D42): CSV in UTF-8, separated by commas or semicolons, at most 20 MB and 200,000
 * lines. `knownProviders` are the names that the column `provider` may have. The result has either rows or problems.
 */
export function parsePrices(text: string, knownProviders: readonly string[]): CheckedPrices {
  if (text.length > mostBytes)
    return { rows: [], problems: [`The file has over ${mostBytes / 1_000_000} MB.`] }
  const lines = text.split(/\r\n?|\n/, mostLines + 2)
  if (lines.at(-1) === '') lines.pop()
  if (lines.length > mostLines) return { rows: [], problems: [`The file has over ${mostLines} lines.`] }
  return checkPrices(recordsOf(lines), knownProviders)
}

/** Parses each line alone: no field may have a line break, and an unclosed quotation mark must not hide the lines after it. */
function* recordsOf(lines: readonly string[]): Generator<PriceRecord> {
  const header = lines.find((line) => line.trim() !== '') ?? ''
  const delimiter = header.includes(';') ? ';' : ','
  for (const [index, text] of lines.entries()) {
    if (text === '') continue
    const line = index + 1
    if (text.length > mostCharacters)
      yield { line, problem: `The line has over ${mostCharacters} characters.` }
    // The decoder replaces what is not UTF-8 by U+FFFD. Files in UTF-16 have NUL.
    else if (/[\0\uFFFD]/.test(text))
      yield { line, problem: 'The line is not UTF-8 text. Save the file as CSV in UTF-8.' }
    else {
      // In a server, a file of 30,000 lines must not hold other requests.
      const { data, errors } = /["\uFEFF]/.test(text)
        ? Papa.parse<string[]>(text, { delimiter, newline: '\n' })
        : { data: [text.split(delimiter)], errors: [] }
      const [fields] = data
      if (errors.length > 0 || !fields)
        yield { line, problem: 'A field in quotation marks must end with one, before the separator.' }
      else yield { line, fields }
    }
  }
}
