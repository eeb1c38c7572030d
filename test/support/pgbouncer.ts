import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, statSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { temporaryFolder } from './folder.ts'
import { freePorts } from './ports.ts'
import type { PostgresServer } from './postgres.ts'

const program = Bun.which('pgbouncer') ?? Bun.which('pgbouncer', { PATH: '/usr/sbin:/usr/local/sbin' })

/** What to say where there is none; undefined where there is. */
export const withoutPgBouncer: string | undefined =
  program === null ? 'PgBouncer: skipped, since it is not installed (apt-get install pgbouncer)' : undefined

/** Starts a PgBouncer in transaction mode before a server; resolves to how the server is reached through it. */
export async function startPgBouncer(server: PostgresServer, sessions: number) {
  if (program === null) throw new Error(withoutPgBouncer)
  const folder = temporaryFolder()
  const [port = 0] = freePorts(1)
  const { username, password } = new URL(server.url)
  const put = (name: string, text: string): string => {
    const path = join(folder.path, name)
    writeFileSync(path, text)
    return path
  }
  const users = put('users.txt', `"${username}" "${password}"\n`)
  const settings = put(
    'pgbouncer.ini',
    `[databases]
* = host=127.0.0.1 port=${server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${users}
pool_mode = transaction
default_pool_size = ${sessions}
`,
  )
  // Like the server, it does not run as root.
  const { uid, gid } = statSync(server.dataFolder)
  for (const path of [folder.path, users, settings]) chownSync(path, uid, gid)
  const child: ChildProcess = spawn(program, [settings], { uid, gid, cwd: folder.path, stdio: 'ignore' })
  const ended = once(child, 'exit')
  let isOver = false
  ended.then(
    () => {
      isOver = true
    },
    () => {
      isOver = true
    },
  )
  while (!isOver && !(await isListening(port))) await Bun.sleep(10)
  if (isOver) throw new Error('PgBouncer does not start')
  const url = new URL(server.url)
  url.port = String(port)
  return {
    url: url.href,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await ended
      folder.remove()
    },
  }
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
