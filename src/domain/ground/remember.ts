/** The function with its results kept, for slow ones. It forgets all once it knows `most`. */
export function remembered<Result extends object | string | null>(
  most: number,
  read: (text: string) => Result,
): (text: string) => Result {
  const results = new Map<string, Result>()
  return (text) => {
    const known = results.get(text)
    if (known !== undefined) return known
    if (results.size >= most) results.clear()
    const result = read(text)
    results.set(text, result)
    return result
  }
}
