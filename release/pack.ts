import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { binaryOf, type TargetName, targets, targetsOf } from './build.ts'
import { assembleChart } from './chart.ts'
import { linuxTargets, packDeb, packRpm, writeCompletions } from './linux.ts'
import { signatureProblem } from './macho.ts'
import { packRelease } from './package.ts'
import { run } from './run.ts'
import { makeSbom } from './sbom.ts'

// Fills dist/release: an archive of each binary of `bun run build --all`, the packages for npm, Debian and RPM, the Helm
// chart, the bill of materials, and the checksums. With names, such as `linux-x64`, only the files of these binaries.

const root = join(import.meta.dir, '..')

const releaseFolder = join(root, 'dist/release')

/** @throws unless a binary contains better-sqlite3's file for its target, and no other */
export function requirePrebuilt(name: TargetName, binary: string): void {
  const bytes = readFileSync(binary)
  const folder = join(root, 'node_modules/better-sqlite3/prebuilds')
  const inside = readdirSync(folder)
    .filter((file) => bytes.includes(readFileSync(join(folder, file))))
    .map((file) => file.replace(/\.node$/, ''))
  if (inside.join() !== targets[name].sqlite) {
    throw new Error(
      `${binary} should have the SQLite for ${targets[name].sqlite}, and has ${inside.join(', ') || 'none'}`,
    )
  }
}

/** @throws if macOS would kill the program */
function requireSigned(binary: string): void {
  const problem = signatureProblem(readFileSync(binary))
  if (problem === undefined) return
  throw new Error(
    `${binary}: ${problem}. On macOS: codesign --remove-signature FILE; codesign --force --sign - FILE`,
  )
}

/** Without the version, so that the latest release has a constant URL. */
export function archiveOf(name: TargetName): string {
  return `otpost-${name}.${name === 'windows-x64' ? 'zip' : 'tar.gz'}`
}

/** The program, shell completion and the license. The same binary gives the same bytes. Throws with the error of tar or zip. */
export function packBinary(name: TargetName, binary: string, archive: string): void {
  const isZip = archive.endsWith('.zip')
  const inside = isZip ? 'otpost.exe' : 'otpost'
  const folder = mkdtempSync(join(tmpdir(), `otpost-${name}-`))
  try {
    copyFileSync(binary, join(folder, inside))
    chmodSync(join(folder, inside), 0o755)
    copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'))
    if (!isZip) writeCompletions(join(folder, 'completions'))
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()
    // The earliest time that zip supports.
    for (const file of files) utimesSync(join(folder, file), 315_532_800, 315_532_800)
    rmSync(archive, { force: true })
    if (isZip) run(['zip', '-q', '-X', archive, ...files], folder)
    else {
      const owner = ['--owner=0', '--group=0', '--numeric-owner', '--mode=u=rwX,go=rX', '--no-recursion']
      const tar = ['tar', '--create', '--format=ustar', ...owner, ...files]
      run(['sh', '-c', '"$@" | gzip -n >"$0"', archive, ...tar], folder)
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

export async function checksumsOf(folder: string): Promise<string> {
  const lines: string[] = []
  for (const name of readdirSync(folder).sort()) {
    const hash = new Bun.CryptoHasher('sha256')
    for await (const part of Bun.file(join(folder, name)).stream()) hash.update(part)
    lines.push(`${hash.digest('hex')}  ${name}\n`)
  }
  return lines.join('')
}

async function main(): Promise<void> {
  const given = process.argv.slice(2)
  const names = targetsOf(given.length > 0 ? given : Object.keys(targets))
  const missing = names.filter((name) => !existsSync(binaryOf(name)))
  if (missing.length > 0) throw new Error(`bun run build --all first: there is no ${missing.join(', ')}`)
  for (const name of names) {
    requirePrebuilt(name, binaryOf(name))
    if (name.startsWith('macos-')) requireSigned(binaryOf(name))
  }
  rmSync(releaseFolder, { recursive: true, force: true })
  mkdirSync(releaseFolder, { recursive: true })
  for (const name of names) packBinary(name, binaryOf(name), join(releaseFolder, archiveOf(name)))
  for (const name of linuxTargets.filter((target) => names.includes(target))) {
    packDeb(name, binaryOf(name), join(releaseFolder, `otpost-${name}.deb`))
    packRpm(name, binaryOf(name), join(releaseFolder, `otpost-${name}.rpm`))
  }
  await packRelease(Object.fromEntries(names.map((name) => [name, binaryOf(name)])), releaseFolder)
  const chart = join(root, 'dist/chart')
  assembleChart(chart)
  run(['tar', '--create', '--gzip', '--file', join(releaseFolder, 'otpost-chart.tgz'), 'otpost'], chart)
  await Bun.write(join(releaseFolder, 'otpost.cdx.json'), `${JSON.stringify(await makeSbom(), null, 2)}\n`)
  const checksums = await checksumsOf(releaseFolder)
  await Bun.write(join(releaseFolder, 'SHA256SUMS'), checksums)
  process.stdout.write(checksums)
}

if (import.meta.main) await main()
