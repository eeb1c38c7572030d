import { connect } from 'node:net'

/** SSLRequest (PostgreSQL manual, 54.2.10); every server and pooler answers it with one byte. */
const sslRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])

/** Needs no free connection and no password. Never rejects. */
export function answers(host: string, port: number, waitMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host)
    const late = setTimeout(() => end(false), waitMs)
    const end = (isAnswered: boolean) => {
      clearTimeout(late)
      socket.destroy()
      resolve(isAnswered)
    }
    socket.once('connect', () => socket.write(sslRequest))
    socket.once('data', () => end(true))
    socket.once('close', () => end(false))
    socket.on('error', () => {})
  })
}
