/** A metric that an expression asks for. */
export interface Selector {
  readonly metric: string
  readonly matchers: readonly { readonly label: string; readonly operator: string; readonly value: string }[]
}

/** What an expression of PromQL names. */
export interface Named {
  readonly selectors: readonly Selector[]
  /** The labels that it groups or joins by. */
  readonly grouping: readonly string[]
}

const aggregators = ['sum', 'avg', 'min', 'max', 'count', 'topk', 'bottomk', 'quantile', 'stddev', 'group']
const groupers = ['by', 'without', 'on', 'ignoring', 'group_left', 'group_right']
const words = ['and', 'or', 'unless', 'bool', 'offset', 'inf', 'nan']

/** Reads what an expression names, Grafana's variables among it; throws at what is not understood. */
export function readPromql(expression: string): Named {
  const selectors: { metric: string; matchers: Selector['matchers'][number][] }[] = []
  const grouping: string[] = []
  const tokens = tokensOf(expression)
  const open: string[] = []
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at] ?? ''
    const next = tokens[at + 1]
    if ('([{'.includes(token)) open.push(token)
    else if (')]}'.includes(token)) {
      if (open.pop() !== { ')': '(', ']': '[', '}': '{' }[token]) throw new Error(`unbalanced: ${expression}`)
    } else if (!/^[a-zA-Z_:]/.test(token) || words.includes(token.toLowerCase())) {
      // A number, a time, an operator or a variable.
    } else if (groupers.includes(token)) {
      if (next !== '(') continue
      for (at += 2; tokens[at] !== ')'; at++) {
        const label = tokens[at]
        if (label === undefined) throw new Error(`a grouping without an end: ${expression}`)
        if (label !== ',') grouping.push(label)
      }
    } else if (next === '(' || aggregators.includes(token)) {
      // A function.
    } else {
      const selector = { metric: token, matchers: [] as Selector['matchers'][number][] }
      selectors.push(selector)
      if (next !== '{') continue
      for (at += 2; tokens[at] !== '}'; at++) {
        if (tokens[at] === ',') continue
        const [label, operator, value] = tokens.slice(at, at + 3)
        if (label === undefined || operator === undefined || !value?.startsWith('"')) {
          throw new Error(`matchers are wrong: ${expression}`)
        }
        selector.matchers.push({ label, operator, value: JSON.parse(value) })
        at += 2
      }
    }
  }
  if (open.length > 0) throw new Error(`unbalanced: ${expression}`)
  return { selectors, grouping }
}

function tokensOf(expression: string): string[] {
  const token =
    /\s*("(?:[^"\\]|\\.)*"|[0-9][0-9a-z.]*|\$\{?[a-zA-Z_]\w*\}?|[a-zA-Z_:][\w:]*|=~|!~|!=|==|>=|<=|[-+*/%^<>=(){}[\],@])\s*/y
  const tokens: string[] = []
  while (token.lastIndex < expression.length) {
    const at = token.lastIndex
    const [, found] = token.exec(expression) ?? []
    if (found === undefined) throw new Error(`not understood from ${expression.slice(at)}`)
    tokens.push(found)
  }
  return tokens
}
