import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import packageJson from '../../package.json'
import { assembleChart } from '../../release/chart.ts'
import { packDeb, packRpm } from '../../release/linux.ts'
import { packBinary } from '../../release/pack.ts'
import { assemblePackage, packRelease } from '../../release/package.ts'
import { smoke } from '../../release/smoke.ts'
import { type Manifest, manifestsOf, sorted } from '../deploy/manifests.ts'
import { kubernetesTool, whyNoTool } from '../deploy/tools.ts'
import { codeIn, temporaryFolder } from '../support/app.ts'
import { binary } from '../support/program.ts'
import { ended, makeCertificate, outputOf } from '../support/run.ts'

// What people install, from the built file to a verified code: the archive, the npm package, the packages for Debian and RPM on a Debian of
// their own under a real systemd, and the Helm chart.

// Building and unpacking files of 137 MB takes long, and other tests use the same two cores.
setDefaultTimeout(400_000)

const root = join(import.meta.dir, '../..')
const folder = temporaryFolder()
const here = (...path: string[]) => join(folder.path, ...path)
const program = binary ?? join(root, 'dist/otpost')
const target = process.arch === 'arm64' ? 'linux-arm64' : 'linux-x64'
const hasProgram = process.platform === 'linux' && existsSync(program)
afterAll(() => folder.remove())

function run(command: readonly string[], { cwd = folder.path, env = {} } = {}) {
  return ended(command, { cwd, env: { ...ownEnv(), ...env } })
}

function succeeded(command: readonly string[], { cwd = folder.path, env = {} } = {}) {
  return outputOf(command, { cwd, env: { ...ownEnv(), ...env } })
}

/** Without settings of this machine's own server. */
function ownEnv() {
  return { PATH: process.env.PATH, HOME: folder.path, LC_ALL: 'C' }
}

describe.skipIf(!hasProgram)('the archive (needs dist/otpost)', () => {
  test('has a program that sends a code, and completion that bash loads', async () => {
    packBinary(target, program, here('otpost.tar.gz'))
    await succeeded(['tar', '-xzf', here('otpost.tar.gz')])
    await smoke([here('otpost')])
    const script = here('completions/otpost')
    expect(await succeeded(['bash', '-c', `source ${script} && complete -p otpost`])).toEndWith(' otpost\n')
  })
})

describe.skipIf(!hasProgram || !Bun.which('npm'))('the npm package (needs npm and dist/otpost)', () => {
  /** A registry with the packages of the release, and nothing else. */
  let registry: ReturnType<typeof Bun.serve>
  let env: Record<string, string>
  const files: Readonly<Record<string, string>> = {
    otpost: 'otpost-npm.tgz',
    [`@otpost/${target}`]: `otpost-npm-${target}.tgz`,
  }

  beforeAll(async () => {
    await packRelease({ [target]: program }, folder.path)
    const integrity = async (file: string) => {
      const hash = new Bun.CryptoHasher('sha512').update(await Bun.file(here(file)).arrayBuffer())
      return `sha512-${hash.digest('base64')}`
    }
    registry = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: async ({ url }) => {
        const name = decodeURIComponent(new URL(url).pathname.slice(1))
        if (existsSync(here(name)) && name.endsWith('.tgz')) return new Response(Bun.file(here(name)))
        const file = files[name]
        if (file === undefined) return new Response('{}', { status: 404 })
        const manifest = await succeeded(['tar', '-xzOf', here(file), 'package/package.json'])
        const { version } = packageJson
        const dist = { tarball: String(new URL(file, registry.url)), integrity: await integrity(file) }
        return Response.json({
          name,
          'dist-tags': { latest: version },
          versions: { [version]: { ...JSON.parse(manifest), dist } },
        })
      },
    })
    env = {
      npm_config_registry: String(registry.url),
      npm_config_cache: here('cache'),
      npm_config_fund: 'false',
    }
  })
  afterAll(() => registry?.stop(true))

  test('installs the binary of this platform alone, which sends a code', async () => {
    mkdirSync(here('application'))
    writeFileSync(here('application/package.json'), '{}')
    await succeeded(['npm', 'install', 'otpost'], { cwd: here('application'), env })
    expect(readdirSync(here('application/node_modules/@otpost'))).toEqual([target])
    await smoke([here('application/node_modules/.bin/otpost')])
  })

  test('`npx otpost demo` sends a code', async () => {
    mkdirSync(here('trial'))
    // In a group of its own: npx starts a shell, which starts the program.
    const demo = Bun.spawn(['npx', '-y', 'otpost', 'demo', '--port', '0'], {
      cwd: here('trial'),
      env: { ...ownEnv(), ...env },
      stdout: 'pipe',
      stderr: 'inherit',
      detached: true,
    })
    try {
      let said = ''
      for await (const chunk of demo.stdout.pipeThrough(new TextDecoderStream() as never)) {
        said += chunk
        if (/http:\/\/127\.0\.0\.1:\d+\//.test(said) && existsSync(here('trial/data/demo.apikey'))) break
      }
      const url = /http:\/\/127\.0\.0\.1:\d+/.exec(said)?.[0] ?? expect.unreachable(said)
      expect(said).toContain(' npx otpost guard mode record\n')
      const key = readFileSync(here('trial/data/demo.apikey'), 'utf8').trim()
      const post = (path: string, fields: object) =>
        fetch(`${url}${path}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', authorization: `Basic ${btoa(`demo:${key}`)}` },
          body: JSON.stringify({ brandId: 'acme', phone: '12025550147', ...fields }),
        })
      expect((await post('/otp/send', {})).status).toBe(200)
      const outbox = await fetch(`${url}/outbox/messages?to=12025550147`)
      const { messages } = (await outbox.json()) as { messages: { text: string }[] }
      expect((await post('/otp/verify', { otp: codeIn(messages.at(-1)?.text) })).status).toBe(200)
    } finally {
      process.kill(-demo.pid, 'SIGKILL')
      await demo.exited
    }
  })

  test('without that package it says what to install, and runs with Bun and better-sqlite3', async () => {
    const modules = here('checkout/node_modules')
    await assemblePackage(join(modules, 'otpost'))
    const command = ['node', join(modules, 'otpost/bin/otpost.js')]
    const { code, stderr } = await run([...command, '--version'])
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: `There is no @otpost/${target} here. Install otpost with optional dependencies, or install Bun and better-sqlite3: npx -p otpost -p better-sqlite3 otpost\n`,
    })
    symlinkSync(join(root, 'node_modules/better-sqlite3'), join(modules, 'better-sqlite3'))
    mkdirSync(here('bun'))
    symlinkSync(process.execPath, here('bun/bun'))
    process.env.PATH = `${here('bun')}:${process.env.PATH}`
    await smoke(command)
  })
})

const tools = ['dpkg-deb', 'rpmbuild', 'rpm', 'mmdebstrap', 'systemd-nspawn', 'openssl'].filter(
  (name) => !Bun.which(name),
)
let machine = here('debian')
const [, release = ''] = existsSync('/etc/os-release')
  ? (/^VERSION_CODENAME=(\w+)$/m.exec(readFileSync('/etc/os-release', 'utf8')) ?? [])
  : []

/** Runs a program as the first process of the machine, or in it without a boot. It has a loopback device only. */
function inMachine(...command: string[]): string[] {
  const options = '--quiet --register=no --keep-unit --private-network --link-journal=no --console=pipe'
  // In a process namespace that ends with its parent: the first process of a machine does not end by itself.
  const ending = ['unshare', '--pid', '--mount-proc', '--fork', '--kill-child=SIGKILL']
  return [...ending, 'systemd-nspawn', ...options.split(' '), `--directory=${machine}`, ...command]
}

/** Boots the machine, which runs the script. Resolves to what the script printed. */
async function booted(script: string): Promise<string[]> {
  writeFileSync(
    join(machine, 'trial'),
    `#!/bin/bash\nexec >/told 2>&1\n${functions}\n${script}\nsystemctl exit 0\n`,
  )
  chmodSync(join(machine, 'trial'), 0o755)
  writeFileSync(join(machine, 'told'), '')
  writeFileSync(
    join(machine, 'etc/systemd/system/trial.service'),
    '[Unit]\nDefaultDependencies=no\nAfter=dbus.socket\n[Service]\nExecStart=/trial\n',
  )
  const child = Bun.spawn(inMachine('/usr/lib/systemd/systemd', '--unit=trial.service', '--show-status=no'), {
    stdout: 'ignore',
    stderr: 'ignore',
    timeout: 120_000,
    killSignal: 'SIGKILL',
  })
  await child.exited
  return readFileSync(join(machine, 'told'), 'utf8').trim().split('\n')
}

/** As an operator would type it. There is no curl in the machine. */
const functions = `
as_otpost() { setpriv --reuid=otpost --regid=otpost --init-groups otpost "$@"; }
ready() { until as_otpost health >/dev/null 2>&1; do sleep 0.1; done; }
post() {
  exec 3<>/dev/tcp/127.0.0.1/3000
  printf 'POST %s HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\nContent-Type: application/json\\r\\nContent-Length: %s\\r\\n\\r\\n%s' "$1" "\${#2}" "$2" >&3
  head -n 1 <&3 | tr -d '\\r'
}
code() {
  local key=$(cat /root/key)
  local fields="\\"appId\\":\\"shop\\",\\"apiKey\\":\\"$key\\",\\"brandId\\":\\"acme\\",\\"phone\\":\\"$1\\""
  post /otp/send "{$fields}"
  local text=$(as_otpost outbox --to $1)
  [[ $text =~ ([0-9]{6})\\ is\\ your ]]
  post /otp/verify "{$fields,\\"otp\\":\\"\${BASH_REMATCH[1]}\\"}"
}
fact() { systemctl show otpost --property="$1"; }`

/** The first start of an installed package, with settings for a trial. */
const firstDay = `
stat --format='%U:%G %a %n' /etc/otpost/otpost.env /var/lib/otpost
sed -i 's/^SMS_PLAIN=.*/SMS_PLAIN=outbox/; s/^SMS_COUNTRIES=.*/SMS_COUNTRIES=US/' /etc/otpost/otpost.env
echo OUTBOX_IN_PRODUCTION=1 >>/etc/otpost/otpost.env
as_otpost migrate
as_otpost brand put acme --name Acme >/root/brand
as_otpost app issue shop --brand acme >/root/key
systemctl --quiet enable --now otpost
ready
code 12025550143`

const installed = [
  'root:otpost 640 /etc/otpost/otpost.env',
  'otpost:otpost 700 /var/lib/otpost',
  'Created the database /var/lib/otpost/otpost.db.',
  'HTTP/1.1 200 OK',
  'HTTP/1.1 200 OK',
]

describe.skipIf(!hasProgram || tools.length > 0 || process.getuid?.() !== 0 || release === '')(
  `Linux packages (need root, dist/otpost${tools.length > 0 ? `, and ${tools.join(', ')}` : ''})`,
  () => {
    /** The script that a package ran during its installation, in the machine. */
    const install = (...command: string[]) => succeeded(inMachine(...command))

    beforeAll(async () => {
      const options = [
        'path-exclude=/usr/share/doc/*',
        'path-exclude=/usr/share/man/*',
        'path-exclude=/usr/share/locale/*',
      ]
      await succeeded([
        ...['mmdebstrap', '--quiet', '--variant=essential', '--include=systemd,libstdc++6'],
        ...['force-unsafe-io', ...options].map((option) => `--dpkgopt=${option}`),
        ...['--aptopt=Acquire::Languages "none"', release, here('clean')],
      ])
      packDeb(target, program, here('otpost.deb'))
      packRpm(target, program, here('otpost.rpm'))
    })

    test('for Debian: installed, upgraded, removed and purged', async () => {
      await succeeded(['cp', '-a', here('clean'), machine])
      cpSync(here('otpost.deb'), join(machine, 'root/otpost.deb'))
      const [cert, key] = ['certificate.pem', 'key.pem'].map((file) => join(machine, 'root', file))
      makeCertificate(cert ?? '', key ?? '', '-subj', '/CN=otp.example.test')
      const size = await succeeded(['dpkg-deb', '--field', here('otpost.deb'), 'Installed-Size'])
      expect(Number(size)).toBeGreaterThan(100_000)
      await install('dpkg', '--install', '/root/otpost.deb')
      expect(await booted(`systemctl is-enabled otpost\n${firstDay}`)).toEqual(['disabled', ...installed])

      // The server that runs is started again, with the operator's settings.
      const told = await booted(`
systemctl is-enabled otpost
systemctl start otpost
ready
before=$(fact MainPID)
dpkg --install /root/otpost.deb >/dev/null 2>/root/said || cat /root/said
ready
[ "$before" = "$(fact MainPID)" ] && echo same process
grep -c OUTBOX_IN_PRODUCTION /etc/otpost/otpost.env
code 12025550144
install -D /usr/share/otpost/tls.conf /etc/systemd/system/otpost.service.d/tls.conf
install -D -o otpost -m 600 /root/certificate.pem /root/key.pem -t /etc/otpost/tls
printf 'TLS_CERT_FILE=/etc/otpost/tls/certificate.pem\\nTLS_KEY_FILE=/etc/otpost/tls/key.pem\\n' >>/etc/otpost/otpost.env
systemctl daemon-reload
systemctl restart otpost
ready
exec 4<>/dev/tcp/127.0.0.1/443 && echo port 443
rm -r /etc/otpost/tls
dpkg --remove otpost >/dev/null 2>/root/said || cat /root/said
systemctl is-active otpost
dpkg --purge otpost 2>&1 | grep kept
ls /usr/bin/otpost /etc/otpost /var/lib/otpost`)
      expect(told).toEqual([
        'enabled',
        '1',
        'HTTP/1.1 200 OK',
        'HTTP/1.1 200 OK',
        'port 443',
        'inactive',
        expect.stringContaining('/etc/otpost and /var/lib/otpost are kept'),
        expect.stringContaining('/usr/bin/otpost'),
        ...['/etc/otpost:', 'otpost.env', '', '/var/lib/otpost:'],
        ...['otpost.db', 'otpost.db.created', 'otpost.db.key'],
      ])
    })

    test('for RPM: installed, installed again and removed, with RPM of Debian', async () => {
      machine = here('rpm')
      await succeeded(['cp', '-a', here('clean'), machine])
      // The machine has no RPM database that could name the C library.
      const rpm = (...args: string[]) => succeeded(['rpm', '--root', machine, '--nodeps', ...args])
      await rpm('--install', here('otpost.rpm'))
      expect(await booted(firstDay)).toEqual(installed)
      await rpm('--upgrade', '--replacepkgs', here('otpost.rpm'))
      expect(
        await booted(
          'systemctl start otpost\nready\ngrep -c OUTBOX_IN_PRODUCTION /etc/otpost/otpost.env\ncode 12025550144',
        ),
      ).toEqual(['1', 'HTTP/1.1 200 OK', 'HTTP/1.1 200 OK'])
      await rpm('--erase', 'otpost')
      const left = ['usr/bin/otpost', 'etc/otpost/otpost.env', 'var/lib/otpost/otpost.db.key']
      expect(left.filter((path) => existsSync(join(machine, path)))).toEqual(left.slice(1))
      const wants = join(machine, 'etc/systemd/system/multi-user.target.wants')
      expect(readdirSync(wants).filter((name) => name.includes('otpost'))).toEqual([])
    })
  },
)

const helm = kubernetesTool('helm', here('tools'))
describe.skipIf(helm === null)(`the Helm chart${helm === null ? ` (${whyNoTool})` : ''}`, () => {
  /** What Helm would install. */
  const rendered = async (...options: string[]) => {
    const text = await succeeded([helm ?? '', 'template', 'trial', here('chart/otpost'), ...options])
    return [Bun.YAML.parse(text)].flat() as unknown as Manifest[]
  }
  beforeAll(() => assembleChart(here('chart')))

  test('passes the linter of Helm', async () => {
    expect(await succeeded([helm ?? '', 'lint', '--strict', here('chart/otpost')])).toContain(
      '0 chart(s) failed',
    )
  })

  test('renders the manifests of deploy/kubernetes/base', async () => {
    const { version } = packageJson
    expect(JSON.parse(readFileSync(here('chart/otpost/Chart.yaml'), 'utf8'))).toMatchObject({
      version,
      appVersion: version,
    })
    const base = manifestsOf('base/otpost.yml').filter(({ kind }) => kind !== 'Namespace')
    const differs = ['namespace', 'checksum/values']
    const plain = (manifests: readonly Manifest[]) =>
      sorted(
        JSON.parse(JSON.stringify(manifests), (key, value) => (differs.includes(key) ? undefined : value)),
      )
    expect(plain(await rendered())).toEqual(plain(base))
  })

  test('takes an image, a size, settings and the Secret of somebody else', async () => {
    const options = [
      'image=a.example/otpost:1',
      'storage=2Gi',
      'settings.GUARD=record',
      'configuration.brands[0].slug=globex',
      'existingSecret=mine',
    ]
    const manifests = await rendered(...options.flatMap((option) => ['--set', option]))
    expect(manifests.map(({ kind }) => kind)).toEqual(['ConfigMap', 'ConfigMap', 'Service', 'StatefulSet'])
    expect(manifests[0]?.data).toMatchObject({ GUARD: 'record', SMS_PLAIN: 'twilio' })
    expect(manifests[1]?.data?.['otpost.yaml']).toContain('slug: globex')
    const text = JSON.stringify(manifests[3])
    for (const part of ['"image":"a.example/otpost:1"', '"storage":"2Gi"', '"secretRef":{"name":"mine"}'])
      expect(text).toContain(part)
  })
})
