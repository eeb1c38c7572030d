// Files that are imported as text, so that a compiled binary carries them.

declare module '*.sql' {
  const text: string
  export default text
}
declare module '*.css' {
  const text: string
  export default text
}
declare module '*/page.js' {
  const text: string
  export default text
}
