import { connect } from 'node:net'

/** Sends a request target exactly as it is, which fetch would normalize, and resolves to the answer. */
export function rawRequest(
  url: URL,
  requestLine: string,
  headers: readonly string[] = ['Host: localhost'],
): Promise<{ readonly status: number; readonly headers: Headers; readonly text: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const socket = connect(Number(url.port), url.hostname, () => {
    socket.write([`${requestLine} HTTP/1.1`, ...headers, 'Connection: close', '', ''].join('\r\n'))
  })
  let received = ''
  socket.on('data', (chunk) => {
    received += chunk
  })
  socket.on('error', reject).on('close', () => resolve(received))
  return promise.then((answer) => {
    const [head = '', ...rest] = answer.split('\r\n\r\n')
    const [statusLine = '', ...lines] = head.split('\r\n')
    const pairs = lines.map((line): [string, string] => {
      const at = line.indexOf(':')
      return [line.slice(0, at), line.slice(at + 1).trim()]
    })
    return {
      status: Number(statusLine.split(' ')[1]),
      headers: new Headers(pairs),
      text: rest.join('\r\n\r\n'),
    }
  })
}
