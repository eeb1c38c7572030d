// Imported as text, so that a compiled binary contains the files.

declare module '*.sql' {
  const text: string
  export default text
}
// Samples of other languages.
declare module '*.cs' {
  const text: string
  export default text
}
declare module '*.go' {
  const text: string
  export default text
}
declare module '*.java' {
  const text: string
  export default text
}
declare module '*.mjs' {
  const text: string
  export default text
}
declare module '*.php' {
  const text: string
  export default text
}
declare module '*.py' {
  const text: string
  export default text
}
declare module '*.sh' {
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
