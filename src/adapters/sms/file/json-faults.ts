/** What may follow what: `^` is the start, `w` a number or a word. */
const follows = /^(\^[{["w]|\{["}]|\[[{["w\]]|[,:][{["w]|["w}\]][,}\]]|":)$/
const tokens = /"(?:[^"\\\n]|\\.)*"|[{}[\],:]|[^\s{}[\],:]+/g

/** What `JSON.parse` does not say: the line that is no JSON, a key that is there twice, and too many levels. */
export function jsonFault(text: string, maxLevels: number): string | undefined {
  const open: Set<string>[] = []
  let [before, kindBefore] = ['', '^']
  for (const { 0: token, index } of text.matchAll(tokens)) {
    const line = () => `line ${text.slice(0, index).split('\n').length}`
    const kind = /^(".*"|[{}[\],:])$/s.test(token) ? token.charAt(0) : /^[-\dfnt]/.test(token) ? 'w' : '?'
    const isAfterEnd = before !== '' && open.length === 0
    if (isAfterEnd || !follows.test(kindBefore + kind)) {
      return `the file is not JSON: ${line()}: ${token.slice(0, 40)} is not possible here`
    }
    if (kind === '{' || kind === '[') open.push(new Set())
    if (kind === '}' || kind === ']') open.pop()
    if (open.length > maxLevels) return `the file is nested deeper than ${maxLevels} levels`
    if (kind === ':') {
      if (open.at(-1)?.has(before)) return `${line()}: the key ${before} is there twice`
      open.at(-1)?.add(before)
    }
    ;[before, kindBefore] = [token, kind]
  }
  return undefined
}
