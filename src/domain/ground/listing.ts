/** The columns of a list, declared once: for `--json`, the table of its command, and the table of its page. */
export type Listing<Row> = Readonly<Record<string, ListColumn<Row>>>

interface ListColumn<Row> {
  /** Undefined: the column is in JSON only. */
  readonly title?: string
  readonly value: (row: Row) => ListValue
  /** In the table of the command, if it does not show the value alone. */
  readonly text?: (row: Row) => string
  readonly isNumber?: true
}

type ListValue = string | number | boolean | null | Date | readonly string[] | object

/** As JSON has it. */
export function rowOf<Row>(listing: Listing<Row>, row: Row): Readonly<Record<string, ListValue>> {
  return Object.fromEntries(Object.entries(listing).map(([name, { value }]) => [name, value(row)]))
}

/** The cells of a command's table. */
export function cellsOf<Row>(listing: Listing<Row>, row: Row): readonly string[] {
  return titled(listing).map(({ value, text }) => (text ? text(row) : textOf(value(row))))
}

export function headOf<Row>(listing: Listing<Row>): readonly string[] {
  return titled(listing).map(({ title = '' }) => title.replace(' (UTC)', '').toUpperCase())
}

function titled<Row>(listing: Listing<Row>): readonly ListColumn<Row>[] {
  return Object.values(listing).filter(({ title }) => title !== undefined)
}

function textOf(value: ListValue): string {
  if (value instanceof Date) return value.toISOString()
  if (typeof value === 'boolean') return value ? 'yes' : '-'
  return String(value ?? '') || '-'
}

/** Null is none. */
export function instant(at: number | null): Date | null {
  return at === null ? null : new Date(at)
}
