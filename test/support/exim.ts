import { chownSync, mkdirSync, readdirSync, readFileSync, watch, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import PostalMime, { type Email } from 'postal-mime'
import { run } from '../../release/run.ts'
import { temporaryFolder } from './app.ts'
import { freePorts } from './ports.ts'
import { makeCertificate } from './run.ts'

/** Debian's Python, which is where Debian's dkimpy is; another one may come first in the PATH. */
const python = '/usr/bin/python3'

/** What is missing here for a real Exim, each with what brings it; empty when nothing is. */
export function missingForExim(): readonly string[] {
  const has = (...command: string[]) => {
    try {
      return Bun.spawnSync(command, { stdout: 'ignore', stderr: 'ignore' }).success
    } catch {
      return false
    }
  }
  return [
    ...(process.platform === 'linux' && process.getuid?.() === 0 ? [] : ['Linux and root, to start it']),
    ...(has('exim4', '-bV') && has('id', 'Debian-exim')
      ? []
      : ['exim4 (apt-get install exim4-daemon-light)']),
    ...(has(python, '-c', 'import dkim') ? [] : ['dkimpy (apt-get install python3-dkim)']),
    ...(has('openssl', 'version') ? [] : ['openssl (apt-get install openssl)']),
  ]
}

/** A mail as Exim put it into the mailbox. */
export interface DeliveredMail {
  readonly raw: string
  readonly mail: Email
}

/**
 * Starts Exim in the foreground, with files of its own in a temporary folder.
 *
 * @param perConnection how many mails it takes over one connection
 */
export async function startExim(perConnection = 100) {
  const folder = temporaryFolder()
  const inFolder = (...names: string[]) => join(folder.path, ...names)
  const folders = ['spool', 'log', 'mail', 'mail/new', 'mail/cur', 'mail/tmp'].map((name) => inFolder(name))
  for (const each of folders) mkdirSync(each, { recursive: true })
  makeCertificates(folder.path)
  const [submission = 0, implicit = 0] = freePorts(2)
  const template = readFileSync(join(import.meta.dir, 'exim/exim.conf'), 'utf8')
  const values: Readonly<Record<string, unknown>> = {
    FOLDER: folder.path,
    SUBMISSION: submission,
    IMPLICIT: implicit,
    PER_CONNECTION: perConnection,
  }
  // The configuration stays root's, or Exim gives up its rights before it reads it.
  writeFileSync(
    inFolder('exim.conf'),
    template.replace(/@([A-Z_]+)@/g, (_, name: string) => String(values[name])),
  )
  const [uid, gid] = ['-u', '-g'].map((flag) => Number(run(['id', flag, 'Debian-exim']))) as [number, number]
  for (const path of [folder.path, ...folders, inFolder('server.key')]) chownSync(path, uid, gid)

  const child = Bun.spawn(['exim4', '-C', inFolder('exim.conf'), '-bdf'], {
    env: { PATH: process.env.PATH ?? '' },
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const log = () => textOf(inFolder('log', 'main'))
  await Promise.race([
    when(inFolder('log'), () => log().includes('listening for') || undefined),
    child.exited.then(async () => {
      throw new Error(`Exim did not start: ${await new Response(child.stderr).text()}${log()}`)
    }),
  ])

  const box = inFolder('mail', 'new')
  const mails = () => readdirSync(box).map((name) => readFileSync(join(box, name), 'utf8'))
  const withId = (id: string) => mails().filter((raw) => raw.includes(`\nMessage-ID: <${id}>\n`))
  return {
    /** STARTTLS is offered; login with TLS only, and not needed. */
    submission: `127.0.0.1:${submission}`,
    /** TLS from the first byte; login is needed. */
    implicit: `127.0.0.1:${implicit}`,
    /** The certificate of who vouches for the server's. */
    caFile: inFolder('ca.pem'),
    /** Resolves to the mails of this Message-ID once there is one; their lines end as Unix has it. */
    async delivered(id: string): Promise<readonly DeliveredMail[]> {
      const found = await when(box, () => (withId(id).length > 0 ? withId(id) : undefined))
      return Promise.all(found.map(async (raw) => ({ raw, mail: await PostalMime.parse(raw) })))
    },
    /** How many mails there are of this Message-ID. */
    count: (id: string) => withId(id).length,
    /** Resolves once the log matches. */
    logged: (pattern: RegExp) => when(inFolder('log'), () => pattern.exec(log()) ?? undefined),
    /** Ends it, with those of its processes that still attend to a connection or a delivery. */
    async [Symbol.asyncDispose](): Promise<void> {
      child.kill()
      await child.exited
      for (let left = processesOf(folder.path); left.length > 0; left = processesOf(folder.path)) {
        for (const pid of left) end(pid)
        await Bun.sleep(10)
      }
      folder.remove()
    },
  }
}

/** What dkimpy says of a mail's signature, where this is the one TXT record in the DNS. */
export function verifyDkim(mail: string, name: string, record: string): string {
  const script = join(import.meta.dir, 'exim/verify-dkim.py')
  const { stdout, stderr } = Bun.spawnSync([python, script, name, record], { stdin: Buffer.from(mail) })
  return (stdout.toString() + stderr.toString()).trim()
}

/** `ca.pem` and, signed by it for this machine, `server.pem` with `server.key`. */
function makeCertificates(folder: string): void {
  const make = (name: string, ...more: string[]) =>
    makeCertificate(join(folder, `${name}.pem`), join(folder, `${name}.key`), '-days', '2', ...more)
  make('ca', '-subj', '/CN=Authority of a test')
  make(
    'server',
    ...['-subj', '/CN=mx.example.test', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'],
    ...['-addext', 'basicConstraints=critical,CA:FALSE'],
    ...['-CA', join(folder, 'ca.pem'), '-CAkey', join(folder, 'ca.key')],
  )
}

/** The processes that were started with a file of this folder. */
function processesOf(folder: string): number[] {
  return readdirSync('/proc')
    .filter((pid) => /^[0-9]+$/.test(pid) && textOf(`/proc/${pid}/cmdline`).includes(`${folder}/`))
    .map(Number)
}

function end(pid: number): void {
  try {
    process.kill(pid)
  } catch {
    // It has ended by itself meanwhile.
  }
}

/** Resolves to what `look` finds, as soon as a change in the folder lets it find something. */
function when<T>(folder: string, look: () => T | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    const check = () => {
      try {
        const found = look()
        if (found === undefined) return
        resolve(found)
      } catch (error) {
        reject(error)
      }
      watcher.close()
    }
    const watcher = watch(folder, check)
    check()
  })
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
