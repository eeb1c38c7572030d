// Files that are imported as text, so that a compiled binary carries them.

declare module '*.sql' {
  const text: string
  export default text
}
declare module '*.css' {
  const text: string
  export default text
}
// Scripts for the browser. A module with types of its own keeps them: this is for what has none.
declare module '*.js' {
  const text: string
  export default text
}
