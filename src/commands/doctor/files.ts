import { accessSync, constants, readdirSync, statfsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { type Finding, fail, inMebibytes, ok, warn } from './finding.ts'

/** A file or folder as this process sees it. */
export interface PathFacts {
  readonly path: string
  readonly kind: 'file' | 'folder' | 'other'
  /** The permission bits, and the sticky one. */
  readonly mode: number
  readonly ownerUid: number
  readonly readable: boolean
  readonly writable: boolean
  /** Of a folder: whether others use it too, so that its mode is not otpost's to change. */
  readonly isShared?: boolean
}

/** What a path is to otpost: who may do what with it. */
export type PathUse = 'database' | 'log' | 'secret' | 'folder'

export function fileFindings(databaseFile: string, hasSecret: boolean): readonly Finding[] {
  const uid = process.getuid?.() ?? 0
  const folder = dirname(resolve(databaseFile))
  const database = pathFacts(databaseFile)
  if (!database) {
    // A server would make it, and the folders above it that are not there.
    const nearest = nearestFolder(folder)
    const problem = nearest && newFolderProblem(folder, nearest, uid)
    return [
      ...(problem ? [problem] : []),
      {
        level: 'warn',
        what: 'database',
        message: `There is no database at ${databaseFile}, or this user cannot read its folder.`,
        remedy:
          "`otpost serve` creates it. If the server is running, set DATABASE_URL to the server's value, and run `otpost doctor` as the server's user.",
      },
    ]
  }
  const paths: readonly (readonly [PathUse, string])[] = [
    ['database', databaseFile],
    ['log', `${databaseFile}-wal`],
    ...(hasSecret ? [] : [['secret', `${databaseFile}.key`] as const]),
    ['folder', folder],
  ]
  const findings = paths.flatMap(([use, path]) => {
    const facts = pathFacts(path)
    const isOwn = uid !== 0 && facts?.ownerUid === uid
    const isShared = use === 'folder' && !isOwn && hasOthers(folder)
    return facts ? [pathFinding(use, { ...facts, isShared }, uid)] : []
  })
  if (!hasSecret && !pathFacts(`${databaseFile}.key`)) {
    findings.push({
      level: 'fail',
      what: 'secret',
      message: `${databaseFile}.key is missing. With a new secret key, codes sent before do not verify, and records of recipients are not found.`,
      remedy: 'Restore the file from your copy, or set SECRET_KEY, before the server starts.',
    })
  }
  return [...findings, diskFinding(freeBytes(folder), sizeOf(databaseFile) + sizeOf(`${databaseFile}-wal`))]
}

/** Whether a folder holds more than databases and what belongs to them. */
function hasOthers(folder: string): boolean {
  try {
    return readdirSync(folder).some((name) => !name.includes('.db') && name !== 'lost+found')
  } catch {
    return false
  }
}

/** A folder, or the nearest one above it that is there, as far as this user can tell. */
function nearestFolder(folder: string): PathFacts | undefined {
  return pathFacts(folder) ?? (folder === dirname(folder) ? undefined : nearestFolder(dirname(folder)))
}

const groupOrOthers = 0o077
const writableByOthers = 0o022
/** Users cannot replace files of others in such a folder. */
const sticky = 0o1000

/**
 * What keeps this user from using a path at all; undefined: nothing does.
 *
 * @param uid the user that this process runs as
 */
function accessProblem(use: PathUse, facts: PathFacts, uid: number): Finding | undefined {
  const { path, kind, mode, ownerUid, readable, writable } = facts
  if (kind !== (use === 'folder' ? 'folder' : 'file')) {
    return fail(use, `${path} is not a ${use === 'folder' ? 'folder' : 'file'}.`, 'Correct DATABASE_URL.')
  }
  if (readable && (writable || use === 'secret')) return undefined
  const lacking = !readable ? 'read' : 'write'
  if (uid !== ownerUid && uid !== 0) {
    return fail(
      use,
      `User ${uid} has no permission to ${lacking} ${path}, which belongs to user ${ownerUid}.`,
      `Run otpost as that user, or change the owner: \`chown ${uid} ${path}\`.`,
    )
  }
  return (mode & 0o600) === 0o600
    ? fail(
        use,
        `${path} cannot be written, although its mode allows it.`,
        'Check whether its file system is read-only, and whether systemd allows the service to write there (ReadWritePaths=).',
      )
    : fail(
        use,
        `User ${uid} has no permission to ${lacking} its own ${use === 'folder' ? 'folder' : 'file'} ${path}.`,
        chmod(use, path),
      )
}

/**
 * What keeps a server from making its database in a folder; undefined: nothing does.
 *
 * @param nearest the folder, or the nearest above it that is there
 * @param uid the user that this process runs as
 */
export function newFolderProblem(folder: string, nearest: PathFacts, uid: number): Finding | undefined {
  if (nearest.path === folder) return accessProblem('folder', nearest, uid)
  if (nearest.kind === 'folder' && nearest.writable) return undefined
  return fail(
    'folder',
    nearest.kind === 'folder'
      ? `User ${uid} cannot create ${folder} or check whether it exists: ${nearest.path} belongs to user ${nearest.ownerUid}.`
      : `${folder} cannot be created: ${nearest.path} is not a folder.`,
    `Create it with \`install -d -m 0700 -o ${uid} ${folder}\`, or set DATABASE_URL to another path.`,
  )
}

function chmod(use: PathUse, path: string): string {
  return `Run \`chmod ${use === 'folder' ? '0700' : '0600'} ${path}\`.`
}

/** @param uid the user that this process runs as */
export function pathFinding(use: PathUse, facts: PathFacts, uid: number): Finding {
  const problem = accessProblem(use, facts, uid)
  if (problem) return problem
  const { path, mode, ownerUid, isShared } = facts
  const seen = `${path} has mode ${(mode & 0o777).toString(8).padStart(4, '0')}`
  if (use === 'secret' && mode & groupOrOthers) {
    return fail(use, `${seen}. Other users can read the secret key.`, chmod(use, path))
  }
  const remedy =
    use === 'folder' && isShared
      ? `Create a folder for the database with \`install -d -m 0700 -o ${uid} /var/lib/otpost\`, and set DATABASE_URL to a file in it.`
      : chmod(use, path)
  if (use === 'folder' && mode & writableByOthers && !(mode & sticky)) {
    return fail(use, `${seen}. Other users can replace the database.`, remedy)
  }
  if (mode & groupOrOthers) {
    const rest =
      use === 'folder' ? 'Other users can list its files.' : 'Other users can read the delivery log.'
    return use !== 'folder' && mode & 0o007
      ? fail(use, `${seen}. ${rest}`, remedy)
      : warn(use, `${seen}. ${rest}`, remedy)
  }
  // The server's user may have no permission for files that root creates.
  if (uid !== 0 && ownerUid !== uid) {
    return warn(
      use,
      `${path} belongs to user ${ownerUid}, but this is user ${uid}.`,
      `Run \`chown ${uid} ${path}\`.`,
    )
  }
  return ok(use, `${seen}.`)
}

/** @param freeBytes what this user may still write; @param databaseBytes the file and its log */
export function diskFinding(freeBytes: number, databaseBytes: number): Finding {
  const message = `${inMebibytes(freeBytes)} free. The database takes ${inMebibytes(databaseBytes)}.`
  const remedy = 'Free disk space, move the database to a larger disk, or lower DELIVERY_LOG_DAYS.'
  if (freeBytes < 64 * 2 ** 20) return fail('disk', message, remedy)
  // A backup or a restore needs as much again.
  if (freeBytes < Math.max(512 * 2 ** 20, databaseBytes)) return warn('disk', message, remedy)
  return ok('disk', message)
}

/** A path as this process sees it; undefined where there is nothing, or nothing that this user may look at. */
export function pathFacts(path: string): PathFacts | undefined {
  try {
    const found = statSync(path)
    return {
      path,
      kind: found.isFile() ? 'file' : found.isDirectory() ? 'folder' : 'other',
      mode: found.mode & 0o7777,
      ownerUid: found.uid,
      readable: may(path, constants.R_OK),
      writable: may(path, constants.W_OK),
    }
  } catch {
    return undefined
  }
}

/** How many bytes a file has; 0 where there is none. */
export function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

/** How many bytes this user may still write to the disk of a folder. */
export function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

function may(path: string, access: number): boolean {
  try {
    accessSync(path, access)
    return true
  } catch {
    return false
  }
}
