/** A sample of a scrape. */
export interface Sample {
  /** With the suffix of its kind: `…_bucket`, `…_sum`, `…_count`. */
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface Family {
  readonly name: string
  readonly type: string
  readonly samples: readonly Sample[]
}

/** A scrape that has been read. */
export interface Exposition {
  readonly families: ReadonlyMap<string, Family>
  readonly samples: readonly Sample[]
  /** The value of the one sample of this name that has these labels, and perhaps others; undefined: there is none. */
  value(name: string, labels?: Readonly<Record<string, string>>): number | undefined
}

const name = /^[a-zA-Z_:][a-zA-Z0-9_:]*/

/**
 * Reads Prometheus's text format, version 0.0.4, and throws where it is not to the letter of what the format and the
 * conventions for names say: each family with one HELP, then one TYPE, then all of its samples; each sample once; counters
 * that end with `_total`; histograms whose buckets add up.
 */
export function readExposition(text: string): Exposition {
  if (!text.endsWith('\n')) throw new Error('the last line must end')
  const families = new Map<string, Family & { samples: Sample[] }>()
  let helped: string | undefined
  let current: (Family & { samples: Sample[] }) | undefined
  for (const line of text.slice(0, -1).split('\n')) {
    const fail = (problem: string): never => {
      throw new Error(`${problem}: ${line}`)
    }
    const [, keyword, about = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? []
    if (line === '') {
      // Nothing is said.
    } else if (keyword === 'HELP') {
      if (families.has(about)) fail('a family comes twice')
      if (rest.replace(/\\\\|\\n/g, '').includes('\\')) fail('the help is not escaped')
      helped = about
    } else if (keyword === 'TYPE') {
      if (about !== helped || families.has(about)) fail('a type without its help before it')
      if (!['counter', 'gauge', 'histogram'].includes(rest)) fail('no type that is used here')
      if ((rest === 'counter') !== about.endsWith('_total')) fail('counters, and they alone, end with _total')
      current = { name: about, type: rest, samples: [] }
      families.set(about, current)
    } else if (line.startsWith('#')) {
      fail('a comment that says nothing')
    } else {
      const sample = readSample(line)
      const suffixes = current?.type === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']
      if (!current || !suffixes.some((suffix) => sample.name === `${current?.name}${suffix}`)) {
        fail('a sample outside of its family')
      }
      current?.samples.push(sample)
    }
  }
  const samples = [...families.values()].flatMap((family) => family.samples)
  const keys = samples.map(({ name, labels }) => JSON.stringify([name, Object.entries(labels).sort()]))
  if (new Set(keys).size < keys.length) throw new Error('a sample comes twice')
  for (const family of families.values()) {
    if (family.type === 'counter' && family.samples.some(({ value }) => !(value >= 0))) {
      throw new Error(`a counter below 0: ${family.name}`)
    }
    if (family.type === 'histogram') checkHistogram(family)
  }
  return {
    families,
    samples,
    value(name, labels = {}) {
      const found = samples.filter(
        (sample) =>
          sample.name === name &&
          Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
      )
      if (found.length > 1) throw new Error(`${found.length} samples of ${name} ${JSON.stringify(labels)}`)
      return found[0]?.value
    },
  }
}

function readSample(line: string): Sample {
  const [sampleName = ''] = name.exec(line) ?? []
  let rest = line.slice(sampleName.length)
  const labels: Record<string, string> = {}
  if (rest.startsWith('{')) {
    rest = rest.slice(1)
    for (;;) {
      const [all = '', label = '', value = '', end] =
        /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\["\\n])*)"([,}])/.exec(rest) ?? []
      if (all === '' || label.startsWith('__') || label in labels)
        throw new Error(`labels are wrong: ${line}`)
      labels[label] = value.replace(/\\(.)/g, (_, escaped) => (escaped === 'n' ? '\n' : escaped))
      rest = rest.slice(all.length)
      if (end === '}') break
    }
  }
  const [, number] = /^ ([+-]?(?:Inf|[0-9.]+(?:e[+-]?[0-9]+)?))$/.exec(rest) ?? []
  if (sampleName === '' || number === undefined) throw new Error(`no sample: ${line}`)
  const value = number.endsWith('Inf') ? (number.startsWith('-') ? -Infinity : Infinity) : Number(number)
  if (Number.isNaN(value)) throw new Error(`no number: ${line}`)
  return { name: sampleName, labels, value }
}

/** Buckets in ascending order, each counting those before it too, up to +Inf, which is the count. */
function checkHistogram({ name: family, samples }: Family): void {
  const series = Map.groupBy(samples, ({ labels: { le: _, ...labels } }) =>
    JSON.stringify(Object.entries(labels).sort()),
  )
  for (const [labels, each] of series) {
    const of = (suffix: string) => each.filter((sample) => sample.name === `${family}${suffix}`)
    const [buckets, sums, counts] = [of('_bucket'), of('_sum'), of('_count')]
    const bounds = buckets.map(({ labels: { le } }) => (le === '+Inf' ? Infinity : Number(le)))
    const isAscending = (values: readonly number[], strictly: boolean) =>
      values.every(
        (value, place) =>
          place === 0 || value - (values[place - 1] ?? 0) >= (strictly ? Number.MIN_VALUE : 0),
      )
    const isRight =
      isAscending(bounds, true) &&
      bounds.at(-1) === Infinity &&
      isAscending(
        buckets.map(({ value }) => value),
        false,
      ) &&
      sums.length === 1 &&
      counts.length === 1 &&
      counts[0]?.value === buckets.at(-1)?.value
    if (!isRight) throw new Error(`the histogram ${family} ${labels} does not add up`)
  }
}
