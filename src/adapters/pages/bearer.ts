import { isSame } from './cookies.ts'

export function showsToken({ headers }: Request, token: string): boolean {
  const [, given] = /^bearer +(\S+) *$/i.exec(headers.get('authorization') ?? '') ?? []
  return given !== undefined && isSame(given, token)
}
