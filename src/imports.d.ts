// Imported as text, so that a compiled binary contains the files.

declare module '*.sql' {
  const text: string
  export default text
}
declare module '*.md' {
  const text: string
  export default text
}
declare module '*.css' {
  const text: string
  export default text
}
// Scripts for the browser. Modules with their own types keep them.
declare module '*.js' {
  const text: string
  export default text
}
