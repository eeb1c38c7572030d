import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { codeIn, temporaryFolder } from '../support/app.ts'
import { freePorts } from '../support/ports.ts'
import { binary } from '../support/program.ts'
import { ended, outputLog } from '../support/run.ts'
import { startSmtp } from '../support/smtp.ts'

// The compiled program in confined environments. First like the image, without a container engine: in namespaces, on a
// read-only root file system with the libraries of the base image alone, as an unprivileged user. Then like the unit:
// under a real systemd, on a root file system built for it.

// Other tests use the same two cores.
setDefaultTimeout(180_000)

const root = join(import.meta.dir, '../..')
const dockerfile = readFileSync(join(root, 'deploy/Dockerfile'), 'utf8')
const compose = Bun.YAML.parse(readFileSync(join(root, 'deploy/compose.yml'), 'utf8')) as {
  services: {
    otpost: { environment: Record<string, string>; tmpfs: string; healthcheck: { test: string[] } }
  }
}

const bwrap = Bun.which('bwrap')
const canIsolate =
  bwrap !== null &&
  Bun.spawnSync([bwrap, '--unshare-all', '--share-net', '--uid', '65532', '--ro-bind', '/', '/', 'true'])
    .success
const why = canIsolate ? '' : bwrap ? ' (bwrap may not make namespaces here)' : ' (bwrap is not installed)'

const folder = temporaryFolder()
const data = join(folder.path, 'data')
const [, user = '', group = ''] = /^USER (\d+):(\d+)$/m.exec(dockerfile) ?? []
const [port = 0] = freePorts(1)
let smtp: Awaited<ReturnType<typeof startSmtp>>
let program: string
let libraries: readonly string[]

beforeAll(async () => {
  if (!canIsolate && !canBoot) return
  program = binary ?? (await built())
  smtp = await startSmtp()
  mkdirSync(data, { mode: 0o700 })
  // The program loads the SQLite library later, from inside the binary.
  const addon = join(root, 'node_modules/better-sqlite3/prebuilds', `linux-${process.arch}.node`)
  libraries = [...new Set([program, addon].flatMap(librariesOf))]
})
afterAll(async () => {
  await smtp?.stop()
  folder.remove()
})

/** Builds the program from the files that .dockerignore includes, as the Dockerfile does, for this machine. */
async function built(): Promise<string> {
  const context = join(folder.path, 'context')
  mkdirSync(context)
  const ignored = readFileSync(join(root, '.dockerignore'), 'utf8').split('\n')
  expect(ignored).toContain('*')
  for (const line of ignored)
    if (line.startsWith('!'))
      cpSync(join(root, line.slice(1)), join(context, line.slice(1)), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(context, 'node_modules'))
  const [, command = ''] = /OTPOST_COMMIT="\$COMMIT" bun (\S+) --target "\$target"/.exec(dockerfile) ?? []
  const child = Bun.spawn([process.execPath, command], {
    cwd: context,
    env: { PATH: process.env.PATH ?? '', OTPOST_COMMIT: 'abc1234567' },
    stdout: 'ignore',
    stderr: 'inherit',
  })
  expect(await child.exited).toBe(0)
  return join(context, 'dist/otpost')
}

function librariesOf(file: string): string[] {
  const said = Bun.spawnSync(['ldd', file]).stdout.toString()
  return [...said.matchAll(/(\/\S+) \(0x/g)].map(([, path = '']) => path)
}

/** The settings of the image and the compose file, except the port and the mail server. */
function environment(): Record<string, string> {
  const [, lines = ''] = /^ENV ((?:.*\\\n)*.*)$/m.exec(dockerfile) ?? []
  const image = [...lines.matchAll(/(\w+)=(\S+)/g)].map(([, name = '', value = '']) => [name, value])
  const { SMTP_URL = '', ...settings } = compose.services.otpost.environment
  return {
    ...Object.fromEntries(image),
    ...settings,
    SMTP_URL: SMTP_URL.replace('mailpit:1025', `127.0.0.1:${smtp.port}`),
    PORT: String(port),
    PATH: '/usr/local/bin',
  }
}

/** A command line in the container. bwrap writes the id of its process to `info`. */
function contained(command: readonly string[], { info = '/dev/null', hasTmp = true } = {}): string[] {
  const [, sizeMiB = ''] = /size=(\d+)m/.exec(compose.services.otpost.tmpfs) ?? []
  const tmp = ['--size', String(Number(sizeMiB) * 1024 * 1024), '--perms', '1777', '--tmpfs', '/tmp']
  return [
    ...['sh', '-c', `exec "$@" 3>"${info}"`, '-', bwrap ?? '', '--info-fd', '3'],
    ...['--unshare-all', '--share-net', '--as-pid-1', '--die-with-parent', '--new-session'],
    ...['--uid', user, '--gid', group, '--cap-drop', 'ALL'],
    ...libraries.flatMap((path) => ['--ro-bind', path, path]),
    ...['--ro-bind', program, '/usr/local/bin/otpost', '--proc', '/proc', '--dev', '/dev'],
    ...(hasTmp ? tmp : []),
    ...['--bind', data, '/data', '--remount-ro', '/', '--clearenv'],
    ...Object.entries(environment()).flatMap(([name, value]) => ['--setenv', name, value]),
    ...command,
  ]
}

/** Runs one command of otpost to its end, as `docker compose exec` or `run` would. */
function run(args: readonly string[], options: { hasTmp?: boolean } = {}) {
  return ended(contained(['otpost', ...args], options))
}

describe.skipIf(!canIsolate)(`the image${why}`, () => {
  test('serves, is healthy, mails a code and stops, on a read-only root file system', async () => {
    expect(await run(['migrate'])).toMatchObject({ code: 0, stderr: '' })
    expect(await run(['brand', 'put', 'acme', '--name', 'Acme'])).toMatchObject({ code: 0, stderr: '' })
    const issued = await run(['app', 'issue', 'shop'])
    expect(issued.code).toBe(0)

    const [, command = ''] = /^CMD (\[.*\])$/m.exec(dockerfile) ?? []
    const [, entrypoint = ''] = /^ENTRYPOINT (\[.*\])$/m.exec(dockerfile) ?? []
    const info = join(folder.path, 'info')
    const server = Bun.spawn(contained([...JSON.parse(entrypoint), ...JSON.parse(command)], { info }), {
      stdout: 'pipe',
      stderr: 'inherit',
    })
    const log = outputLog(server.stdout)
    await log.said(/"msg":"listening"/)

    const [, ...healthcheck] = compose.services.otpost.healthcheck.test
    expect(dockerfile).toContain(`CMD ${JSON.stringify(healthcheck).replaceAll(',', ', ')}`)
    const probe = Bun.spawn(contained(healthcheck), { stdout: 'pipe' })
    expect(await new Response(probe.stdout).text()).toBe(`http://127.0.0.1:${port} is ready\n`)
    expect(await probe.exited).toBe(0)

    const post = async (path: string, fields: object) => {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          appId: 'shop',
          apiKey: issued.stdout.trim(),
          brandId: 'acme',
          email: 'you@example.com',
          ...fields,
        }),
      })
      return answer.status
    }
    expect(await post('/otp/send', { channel: 'EMAIL' })).toBe(200)
    await smtp.arrived(1)
    expect(smtp.received[0]).toMatchObject({
      to: ['you@example.com'],
      from: 'codes@acme.example',
      secure: false,
    })
    expect(await post('/otp/verify', { otp: codeIn(smtp.received[0]?.mail.text) })).toBe(200)

    // Only the volume is writable.
    expect(await run(['backup', '/backup.db'])).toMatchObject({ code: 1 })
    expect(await run(['backup', '/data/backup.db'])).toMatchObject({ code: 0 })
    expect(readdirSync(data).sort()).toEqual(
      [
        'backup.db',
        'otpost.db',
        'otpost.db-shm',
        'otpost.db-wal',
        'otpost.db.created',
        'otpost.db.key',
      ].sort(),
    )

    // The first process of a container gets only signals that it handles.
    process.kill(JSON.parse(readFileSync(info, 'utf8'))['child-pid'], 'SIGTERM')
    expect(await server.exited).toBe(0)
    expect(await log.ended).toContain('"msg":"stopped"')
  })

  test('reports a missing temporary folder', async () => {
    const { code, stderr } = await run(['migrate'], { hasTmp: false })
    expect(code).toBe(1)
    expect(stderr).toContain('TMPDIR')
  })
})

const machine = join(folder.path, 'machine')
const systemd = '/usr/lib/systemd/systemd'

/** The parts of this machine that the booted one can read. */
const borrowed = ['/usr/bin', '/usr/sbin', '/usr/lib', '/usr/lib64'].filter((path) => existsSync(path))

/** A command line that runs a program as the first process of the booted machine. */
function booted(...command: string[]): string[] {
  const options = '--quiet --register=no --keep-unit --private-network --link-journal=no --console=pipe'
  const mounts = borrowed.map((path) => `--bind-ro=${path}`)
  // In a process namespace that ends with its parent: the first process of a machine does not end by itself.
  const ending = ['unshare', '--pid', '--mount-proc', '--fork', '--kill-child=SIGKILL']
  return [...ending, 'systemd-nspawn', ...options.split(' '), `--directory=${machine}`, ...mounts, ...command]
}

function makeMachine(): void {
  for (const path of [
    ...borrowed,
    '/usr/local/bin',
    '/etc/otpost',
    '/etc/systemd/system',
    '/etc/sysusers.d',
    '/var',
    '/tmp',
  ]) {
    mkdirSync(join(machine, path), { recursive: true })
  }
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) symlinkSync(`usr/${name}`, join(machine, name))
  write('etc/machine-id', '')
  write('etc/passwd', 'root:x:0:0::/root:/bin/sh\n')
  write('etc/group', 'root:x:0:\n')
  copyFileSync(join(root, 'deploy/systemd/otpost.sysusers'), join(machine, 'etc/sysusers.d/otpost.conf'))
  Bun.spawnSync(['systemd-sysusers', `--root=${machine}`])
  copyFileSync(
    join(root, 'deploy/systemd/otpost.service'),
    join(machine, 'etc/systemd/system/otpost.service'),
  )
  copyFileSync(join(root, 'deploy/systemd/otpost.env'), join(machine, 'etc/otpost/otpost.env'))
  mkdirSync(join(machine, 'etc/systemd/system/otpost.service.d'))
  write(
    'etc/systemd/system/otpost.service.d/test.conf',
    '[Unit]\nOnFailure=ending.service\n[Service]\nStandardOutput=append:/log\n',
  )
  for (const [name, script] of [
    ['hello', hello],
    ['facts', trace],
    ['ending', ending],
  ] as const) {
    write(name, script)
    chmodSync(join(machine, name), 0o755)
    write(
      `etc/systemd/system/${name}.service`,
      `[Unit]\nDefaultDependencies=no\nAfter=otpost.service\n[Service]\nExecStart=/${name}\n`,
    )
  }
  write('etc/systemd/system/facts.target', '[Unit]\nWants=otpost.service facts.service\n')
}

function write(path: string, text: string): void {
  writeFileSync(join(machine, path), text)
}

/** Runs in the booted machine once the unit is started; each line of output is a fact. */
const trace = `#!/bin/bash
exec >/told 2>&1
fact() { systemctl show otpost --property="$1"; }
grep -q -m1 '"msg":"listening"' <(tail --follow --lines=+1 /log)
fact ActiveState
/usr/local/bin/otpost health
process=/proc/$(systemctl show otpost --property=MainPID --value)
grep -E '^(Seccomp|NoNewPrivs|CapEff|CapBnd):' $process/status | tr '\\t' ' '
stat --format='%U %a %n' /var/lib/otpost /var/lib/otpost/otpost.db{,.created,.key}
systemctl stop otpost
fact Result
sed -i 's/^PORT=.*/PORT=none/' /etc/otpost/otpost.env
systemctl start otpost
`

/** Runs once the unit has failed for good, not while systemd is about to restart it. */
const ending = `#!/bin/bash
exec >>/told 2>&1
systemctl show otpost --property=ExecMainStatus,NRestarts,ActiveState
systemctl exit 0
`

/** Ends the machine as soon as it has booted. */
const hello = '#!/bin/sh\n: >/up\nsystemctl exit 0\n'

const isRoot = process.getuid?.() === 0
const isInstalled = Bun.which('systemd-nspawn') !== null && existsSync(systemd)
const canBoot =
  isRoot &&
  isInstalled &&
  (() => {
    makeMachine()
    // Some machines can run systemd-nspawn but can not boot a system in it.
    Bun.spawnSync(booted(systemd, '--unit=hello.service', '--show-status=no'), { timeout: 60_000 })
    return existsSync(join(machine, 'up'))
  })()
const whyNotBooted = canBoot
  ? ''
  : !isRoot
    ? ' (not root)'
    : isInstalled
      ? ' (systemd-nspawn can not boot a system here)'
      : ' (systemd-container is not installed)'

test.skipIf(!canBoot)(
  `the unit runs otpost under all its restrictions, and does not restart it with wrong settings${whyNotBooted}`,
  async () => {
    copyFileSync(program, join(machine, 'usr/local/bin/otpost'))
    const child = Bun.spawn(booted(systemd, '--unit=facts.target', '--show-status=no'), {
      stdout: 'ignore',
      stderr: 'ignore',
      // In case the unit never fails for good.
      timeout: 150_000,
      killSignal: 'SIGKILL',
    })
    await child.exited
    expect(readFileSync(join(machine, 'told'), 'utf8').trim().split('\n')).toEqual([
      'ActiveState=active',
      'http://127.0.0.1:3000 is ready',
      'CapEff: 0000000000000000',
      'CapBnd: 0000000000000000',
      'NoNewPrivs: 1',
      'Seccomp: 2',
      'otpost 700 /var/lib/otpost',
      'otpost 600 /var/lib/otpost/otpost.db',
      'otpost 600 /var/lib/otpost/otpost.db.created',
      'otpost 600 /var/lib/otpost/otpost.db.key',
      'Result=success',
      'NRestarts=0',
      'ExecMainStatus=78',
      'ActiveState=failed',
    ])
  },
)
