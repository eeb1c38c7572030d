import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from './app.ts'
import { freePorts } from './ports.ts'

const files = join(import.meta.dir, 'kannel')

/** Debian keeps what is not for users out of their PATH. */
const bearerboxPath = which('bearerbox')
const smsboxPath = which('smsbox')
const fakesmscPath = '/usr/lib/kannel/test/fakesmsc'
const perlPath = which('perl')

/** What to say where Kannel, or what plays the operator's SMSC, is not installed; undefined where all is there. */
export const withoutKannel: string | undefined =
  bearerboxPath &&
  smsboxPath &&
  existsSync(fakesmscPath) &&
  perlPath &&
  Bun.spawnSync([perlPath, '-MNet::SMPP', '-MJSON::PP', '-e1']).success
    ? undefined
    : 'Kannel: skipped, since it is not here (apt-get install kannel kannel-extras libnet-smpp-perl)'

function which(program: string): string {
  return Bun.which(program, { PATH: `${process.env.PATH ?? ''}:/usr/sbin` }) ?? ''
}

/** A message as the SMSC got it over SMPP. */
export interface Submitted {
  readonly from: string
  readonly to: string
  /** `data_coding`: 0 is the SMSC's usual alphabet, GSM 03.38; 8 is UCS-2. */
  readonly coding: number
  /** Whether the text begins with a user data header, as in the parts of a long message. */
  readonly udh: boolean
  /** `validity_period`, empty where none was given. */
  readonly validity: string
  readonly hex: string
  /** By tag, such as `0x1400`. */
  readonly tlvs: Readonly<Record<string, string>>
  /** How it was answered; 0 is accepted. */
  readonly status: number
}

/** The text of a message. Of GSM 03.38 only `@` is known here to differ from ASCII: tests use no more of it. */
export function textOf({ coding, udh, hex }: Submitted): string {
  const whole = Buffer.from(hex, 'hex')
  const bytes = udh ? whole.subarray(1 + (whole[0] ?? 0)) : whole
  return coding === 8
    ? new TextDecoder('utf-16be').decode(bytes)
    : bytes.toString('latin1').replaceAll('\0', '@')
}

/** What comes in from outside, and may be waited for. */
export class Arrivals<T> {
  private readonly here: T[] = []
  private readonly awaited = new Set<{ fits: (arrival: T) => boolean; take: (arrival: T) => void }>()

  add(arrival: T): void {
    for (const one of this.awaited) {
      if (!one.fits(arrival)) continue
      this.awaited.delete(one)
      one.take(arrival)
      return
    }
    this.here.push(arrival)
  }

  /** The first that fits, as soon as it is here; the next call gets the next one. */
  take(fits: (arrival: T) => boolean): Promise<T> {
    const index = this.here.findIndex(fits)
    const [arrival] = index < 0 ? [] : this.here.splice(index, 1)
    return arrival === undefined
      ? new Promise((take) => this.awaited.add({ fits, take }))
      : Promise.resolve(arrival)
  }
}

/**
 * A Kannel of the test's own on free ports: bearerbox, smsbox, and two SMSCs, `FAKE` (Kannel's fakesmsc) and `SIM`, which
 * Kannel reaches over SMPP 3.4. It is ready once this resolves.
 */
export async function startKannel() {
  const folder = temporaryFolder()
  const [admin = 0, box = 0, fake = 0, sendsms = 0, smpp = 0] = freePorts(5)
  const password = crypto.randomUUID()
  const children = new Set<Bun.Subprocess>()
  const submitted = new Arrivals<Submitted>()
  const handset = new Arrivals<string>()
  const fakesmscSaid: string[] = []
  const conf = join(folder.path, 'kannel.conf')
  let smsc: Bun.Subprocess | undefined
  let bearerbox: Bun.Subprocess | undefined

  const run = <Out extends 'pipe' | 'ignore'>(name: string, command: string[], stdout: Out) => {
    const child = Bun.spawn(command, { cwd: folder.path, stdout, stderr: Bun.file(logOf(name)) })
    children.add(child)
    child.exited.then(() => children.delete(child))
    return child
  }
  const logOf = (name: string) => join(folder.path, `${name}.log`)

  /** Kannel's own view of itself; empty while there is none. */
  const status = async () => {
    try {
      return await (await fetch(`http://127.0.0.1:${admin}/status.txt?password=${password}`)).text()
    } catch {
      return ''
    }
  }
  const ready = async (what: string, isReady: (status: string) => boolean) => {
    const giveUpAt = performance.now() + 60_000
    while (!isReady(await status())) {
      const ended = bearerbox !== undefined && hasEnded(bearerbox)
      if (ended || performance.now() > giveUpAt) {
        const logs = ['bearerbox', 'smsbox'].map((name) => readLog(logOf(name)))
        const said = [...logs, ...fakesmscSaid].join('\n')
        throw new Error(`Kannel: ${what}${ended ? ', bearerbox has ended' : ''}\n${said}`)
      }
      await Bun.sleep(25)
    }
  }

  /** The operator's SMSC, at the same port each time. */
  const startSmsc = async () => {
    const child = run('smsc', [perlPath, join(files, 'smsc.pl'), String(smpp)], 'pipe')
    smsc = child
    const listening = Promise.withResolvers<void>()
    eachLine(child.stdout, (line) => {
      const said = JSON.parse(line)
      if (said.listening) listening.resolve()
      else submitted.add(said)
    })
    child.exited.then(() => listening.reject(new Error(`the SMSC ended: ${readLog(logOf('smsc'))}`)))
    await listening.promise
  }
  const start = async () => {
    bearerbox = run('bearerbox', [bearerboxPath, '-v', '1', conf], 'ignore')
    await ready('bearerbox does not start', (said) => said.includes('Status: running'))
    const startSmsbox = () => run('smsbox', [smsboxPath, '-v', '1', conf], 'ignore')
    const startFakesmsc = () => {
      const child = run('fakesmsc', ['sh', '-c', `exec ${fakesmscCommand(fake)} 2>&1`], 'pipe')
      eachLine(child.stdout, (line) => {
        fakesmscSaid.push(line)
        handset.add(line)
      })
      return child
    }
    let smsbox = startSmsbox()
    let fakesmsc = startFakesmsc()
    // bearerbox reports that it runs before it listens for these two, which exit if they can not connect.
    await ready('its parts do not find each other', (said) => {
      if (hasEnded(smsbox)) smsbox = startSmsbox()
      if (hasEnded(fakesmsc)) fakesmsc = startFakesmsc()
      return [/smsbox:.*on-line/, /FAKE\[FAKE\].*\(online/, /SIM\[SIM\].*\(online/].every((part) =>
        part.test(said),
      )
    })
  }
  /** At once, and smsbox first: it would start itself anew for want of its bearerbox. */
  const end = async () => {
    const all = [...children].reverse()
    for (const child of all) child.kill('SIGKILL')
    await Promise.all(all.map(({ exited }) => exited))
    folder.remove()
  }

  try {
    await startSmsc()
    writeFileSync(
      conf,
      readFileSync(join(files, 'kannel.conf'), 'utf8')
        .replaceAll('@ADMIN_PORT@', String(admin))
        .replaceAll('@ADMIN_PASSWORD@', password)
        .replaceAll('@BOX_PORT@', String(box))
        .replaceAll('@FAKE_PORT@', String(fake))
        .replaceAll('@SMPP_PORT@', String(smpp))
        .replaceAll('@SENDSMS_PORT@', String(sendsms)),
    )
    await start()
  } catch (error) {
    await end()
    throw error
  }
  return {
    /** The settings that make this the provider of a server; its messages take the SMPP link. */
    env: {
      KANNEL_URL: `http://127.0.0.1:${sendsms}`,
      KANNEL_USERNAME: 'otpost',
      KANNEL_PASSWORD: 'sendword',
      KANNEL_FROM: 'ACMEIN',
      KANNEL_SMSC: 'SIM',
    },
    /** What the SMSC got over SMPP. */
    submitted,
    /** What fakesmsc printed of what it got. */
    handset,
    /** Takes the SMSC away; resolves once Kannel knows. */
    async stopSmsc(): Promise<void> {
      smsc?.kill('SIGKILL')
      await smsc?.exited
      await ready('it does not notice that the SMSC is gone', (said) =>
        /SIM\[SIM\].*re-connecting/.test(said),
      )
    },
    startSmsc,
    /** Stops Kannel as an operator does: bearerbox stops the others. */
    async stopKannel(): Promise<void> {
      bearerbox?.kill('SIGTERM')
      const others = [...children].filter((child) => child !== smsc)
      await Promise.all(others.map(({ exited }) => exited))
    },
    startKannel: start,
    end,
  }
}

/** It needs a message to send, and sends it once; it prints what it receives on stderr. */
function fakesmscCommand(port: number): string {
  return `${fakesmscPath} -H 127.0.0.1 -r ${port} -m 1 "100 200 text hello"`
}

function hasEnded({ exitCode, signalCode }: Bun.Subprocess): boolean {
  return exitCode !== null || signalCode !== null
}

function readLog(path: string): string {
  return existsSync(path) ? readFileSync(path, 'utf8') : ''
}

async function eachLine(stream: ReadableStream<Uint8Array>, take: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) take(line)
  }
}
