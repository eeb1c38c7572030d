import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import packageJson from '../package.json'
import type { TargetName } from './build.ts'
import { run } from './run.ts'

// Builds the packages for Debian and for distributions with RPM, with dpkg-deb and rpmbuild: the binary, the systemd unit, the user, the
// example settings and shell completion. The scripts in deploy/packages create the user and the settings.

const root = join(import.meta.dir, '..')
const scripts = ['postinst', 'prerm', 'postrm'] as const
const shells = { bash: 'otpost', zsh: '_otpost', fish: 'otpost.fish' } as const

/** Processors, as each kind of package names them. */
const processors = {
  'linux-x64': { deb: 'amd64', rpm: 'x86_64' },
  'linux-arm64': { deb: 'arm64', rpm: 'aarch64' },
} as const satisfies Partial<Record<TargetName, object>>

export type LinuxTarget = keyof typeof processors
export const linuxTargets = Object.keys(processors) as LinuxTarget[]

/** `-` begins the part of the package's own version, and `~` is older than the version without it. */
const version = packageJson.version.replace('-', '~').replaceAll('-', '.')
const summary = 'Verification codes and notifications by SMS and e-mail'
const description =
  'otpost sends and verifies codes, and sends notifications, for applications that call it over HTTP.'

/** Writes the completion script of each shell, by the file name that the shell expects. */
export function writeCompletions(
  folder: string,
  place: Partial<Record<keyof typeof shells, string>> = {},
): void {
  for (const [shell, file] of Object.entries(shells) as [keyof typeof shells, string][]) {
    const path = join(folder, place[shell] ?? '', file)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, run([process.execPath, join(root, 'src/main.ts'), 'completion', shell]))
  }
}

/** The files that a package installs. */
function stage(binary: string, folder: string, zsh: string): void {
  const put = (from: string, to: string, mode = 0o644, edit = (text: string) => text) => {
    const path = join(folder, to)
    mkdirSync(dirname(path), { recursive: true })
    if (from === binary) copyFileSync(binary, path)
    else writeFileSync(path, edit(readFileSync(join(root, from), 'utf8')))
    chmodSync(path, mode)
  }
  put(binary, 'usr/bin/otpost', 0o755)
  // Programs of packages are in /usr/bin, those of operators in /usr/local/bin.
  put('deploy/systemd/otpost.service', 'usr/lib/systemd/system/otpost.service', 0o644, (text) =>
    text.replace('/usr/local/bin/', '/usr/bin/').replace(/^# .*\n/, ''),
  )
  put('deploy/systemd/otpost.sysusers', 'usr/lib/sysusers.d/otpost.conf')
  put('deploy/systemd/otpost.env', 'usr/share/otpost/otpost.env')
  put('deploy/systemd/tls.conf', 'usr/share/otpost/tls.conf')
  put('LICENSE', 'usr/share/doc/otpost/copyright')
  writeCompletions(join(folder, 'usr/share'), {
    bash: 'bash-completion/completions',
    zsh,
    fish: 'fish/vendor_completions.d',
  })
}

export function packDeb(target: LinuxTarget, binary: string, file: string): void {
  inFolder((folder) => {
    stage(binary, folder, 'zsh/vendor-completions')
    const control = {
      Package: 'otpost',
      Version: `${version}-1`,
      Architecture: processors[target].deb,
      Maintainer: 'The authors of otpost <otpost@localhost>',
      Section: 'net',
      Priority: 'optional',
      'Installed-Size': kibibytesIn(folder),
      // The same as for the binary: docs/production.md.
      Depends: 'libc6 (>= 2.34), libstdc++6 (>= 11), systemd | systemd-standalone-sysusers',
      Description: `${summary}\n ${description}`,
    }
    mkdirSync(join(folder, 'DEBIAN'))
    const lines = Object.entries(control).map(([field, value]) => `${field}: ${value}\n`)
    writeFileSync(join(folder, 'DEBIAN/control'), lines.join(''))
    for (const script of scripts) {
      copyFileSync(join(root, 'deploy/packages', script), join(folder, 'DEBIAN', script))
      chmodSync(join(folder, 'DEBIAN', script), 0o755)
    }
    run(['dpkg-deb', '--root-owner-group', '-Zgzip', '-z6', '--build', folder, file])
  })
}

/** As Debian counts them for Installed-Size: each folder as 1. */
function kibibytesIn(folder: string): number {
  const stats = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) =>
    statSync(join(folder, path)),
  )
  return stats.reduce((sum, stat) => sum + (stat.isFile() ? Math.ceil(stat.size / 1024) : 1), 0)
}

export function packRpm(target: LinuxTarget, binary: string, file: string): void {
  inFolder((folder) => {
    const files = join(folder, 'files')
    stage(binary, files, 'zsh/site-functions')
    const installed = readdirSync(files, { recursive: true, encoding: 'utf8' }).filter((path) =>
      statSync(join(files, path)).isFile(),
    )
    const [post, preun, postun] = scripts.map((name) =>
      readFileSync(join(root, 'deploy/packages', name), 'utf8'),
    )
    const spec = `Name: otpost
Version: ${version}
Release: 1
Summary: ${summary}
License: ${packageJson.license}
Requires: libstdc++, systemd
# Stripping removes the program from the binary, which Bun appends.
%global debug_package %{nil}
%global __os_install_post %{nil}
%global _build_id_links none
%description
${description}
%install
cp -a ${files}/. %{buildroot}/
%post
${post}
%preun
${preun}
%postun
${postun}
%files
%defattr(-,root,root)
${installed.map((path) => `"/${path}"`).join('\n')}
`
    writeFileSync(join(folder, 'otpost.spec'), spec)
    const defined = {
      _topdir: join(folder, 'build'),
      _rpmfilename: 'otpost.rpm',
      _rpmdir: folder,
      _binary_payload: 'w6.gzdio',
      _buildhost: 'localhost',
      use_source_date_epoch_as_buildtime: '1',
      clamp_mtime_to_source_date_epoch: '1',
    }
    const defines = Object.entries(defined).flatMap(([name, value]) => ['--define', `${name} ${value}`])
    run([
      'rpmbuild',
      '-bb',
      '--quiet',
      '--target',
      `${processors[target].rpm}-linux`,
      ...defines,
      join(folder, 'otpost.spec'),
    ])
    copyFileSync(join(folder, 'otpost.rpm'), file)
  })
}

function inFolder(work: (folder: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), 'otpost-package-'))
  chmodSync(folder, 0o755)
  try {
    work(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}
