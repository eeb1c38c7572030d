import { accessSync, constants, readdirSync, statfsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { bytesWords } from '../domain/ground/format.ts'
import { leastFreeBytes } from '../domain/health/conditions.ts'
import { type Finding, fail, ok, warn } from '../domain/health/problem.ts'

// Owner, mode and space of the database file, its folder and the secret key.

export interface PathFacts {
  readonly path: string
  readonly kind: 'file' | 'folder' | 'other'
  /** Includes the sticky bit. */
  readonly mode: number
  readonly ownerUid: number
  readonly readable: boolean
  readonly writable: boolean
  /** A folder with other files: otpost must not change its mode. */
  readonly isShared?: boolean
}

type PathUse = 'database' | 'log' | 'secret' | 'folder'

/** If there is no database, only what prevents a server from creating it. */
export function fileFindings(databaseFile: string, hasSecret: boolean): readonly Finding[] {
  const uid = process.getuid?.() ?? 0
  const folder = dirname(resolve(databaseFile))
  const database = pathFacts(databaseFile)
  if (!database) {
    // A server creates the folder and its parents.
    const nearest = nearestFolder(folder)
    const problem = nearest && newFolderProblem(folder, nearest, uid)
    return problem ? [problem] : []
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
    findings.push(
      fail(
        'secret',
        `${databaseFile}.key is missing. With a new secret key, codes sent before do not verify, and records of recipients are not found.`,
        'Restore the file from your copy, or set SECRET_KEY, before the server starts.',
      ),
    )
  }
  return [...findings, diskFinding(freeBytes(folder), sizeOf(databaseFile) + sizeOf(`${databaseFile}-wal`))]
}

function hasOthers(folder: string): boolean {
  try {
    return readdirSync(folder).some((name) => !name.includes('.db') && name !== 'lost+found')
  } catch {
    return false
  }
}

/** The folder, or its nearest parent that this user can see. */
function nearestFolder(folder: string): PathFacts | undefined {
  return pathFacts(folder) ?? (folder === dirname(folder) ? undefined : nearestFolder(dirname(folder)))
}

const groupOrOthers = 0o077
const writableByOthers = 0o022
/** In such a folder, users cannot replace files of others. */
const sticky = 0o1000

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

/** @param nearest the folder, or its nearest existing parent */
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
  // The server may not have access to files that root creates.
  if (uid !== 0 && ownerUid !== uid) {
    return warn(
      use,
      `${path} belongs to user ${ownerUid}, but this is user ${uid}.`,
      `Run \`chown ${uid} ${path}\`.`,
    )
  }
  return ok(use, `${seen}.`)
}

export function diskFinding(freeBytes: number, databaseBytes: number): Finding {
  const message = `${bytesWords(freeBytes)} free. The database takes ${bytesWords(databaseBytes)}.`
  const remedy = 'Free disk space, move the database to a larger disk, or lower DELIVERY_LOG_DAYS.'
  if (freeBytes < leastFreeBytes) return fail('disk', message, remedy)
  // A backup or a restore needs the size of the database.
  if (freeBytes < Math.max(512 * 2 ** 20, databaseBytes)) return warn('disk', message, remedy)
  return ok('disk', message)
}

/** Undefined: there is no such path, or this user cannot see it. */
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

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

function freeBytes(folder: string): number {
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
