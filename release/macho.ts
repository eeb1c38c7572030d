import { createHash } from 'node:crypto'

// macOS kills a program whose signature does not match its bytes. A signature has the hash of each page (xnu,
// osfmk/kern/cs_blobs.h). A program for Intel needs none.

const machO64 = 0xfeedfacf
const segmentCommand = 0x19
const codeSignatureCommand = 0x1d
const embeddedSignature = 0xfade0cc0
const codeDirectory = 0xfade0c02
const sha256 = 2

/** Undefined if the signature matches. */
export function signatureProblem(file: Buffer): string | undefined {
  if (file.readUInt32LE(0) !== machO64) return 'it is not a program for macOS'
  const signature = signatureIn(file)
  if (signature === undefined) return 'it is not signed'
  if (signature.readUInt32BE(0) !== embeddedSignature) return 'its signature can not be read'
  for (let index = 0; index < signature.readUInt32BE(8); index++) {
    const blob = signature.subarray(signature.readUInt32BE(16 + 8 * index))
    if (blob.readUInt32BE(0) === codeDirectory && blob.readUInt8(37) === sha256)
      return pagesProblem(file, blob)
  }
  return 'its signature has no hashes'
}

/** A signature of other bytes is worse than none. Throws if it is not at the end of the file. */
export function withoutSignature(file: Buffer): Buffer {
  const commands = commandsOf(file)
  const signed = commands.find(({ command }) => command === codeSignatureCommand)
  if (!signed) return file
  const start = file.readUInt32LE(signed.at + 8)
  const isLast = signed === commands.at(-1) && start + file.readUInt32LE(signed.at + 12) === file.length
  const links = commands.find(
    ({ command, at }) => command === segmentCommand && nameAt(file, at + 8) === '__LINKEDIT',
  )
  if (!isLast || !links)
    throw new Error('cannot remove the signature: it is not at the end, where linkers put it')
  const rest = Buffer.from(file.subarray(0, start))
  rest.writeUInt32LE(commands.length - 1, 16)
  rest.writeUInt32LE(file.readUInt32LE(20) - signed.bytes, 20)
  rest.fill(0, signed.at, signed.at + signed.bytes)
  rest.writeBigUInt64LE(BigInt(start) - file.readBigUInt64LE(links.at + 40), links.at + 48)
  return rest
}

function signatureIn(file: Buffer): Buffer | undefined {
  const signed = commandsOf(file).find(({ command }) => command === codeSignatureCommand)
  if (!signed) return undefined
  const start = file.readUInt32LE(signed.at + 8)
  return file.subarray(start, start + file.readUInt32LE(signed.at + 12))
}

/** The load commands and their offsets (mach-o/loader.h). */
function commandsOf(file: Buffer): { command: number; at: number; bytes: number }[] {
  const commands = []
  for (let at = 32, left = file.readUInt32LE(16); left > 0; left--) {
    const [command, bytes] = [file.readUInt32LE(at), file.readUInt32LE(at + 4)]
    commands.push({ command, at, bytes })
    at += bytes
  }
  return commands
}

function nameAt(file: Buffer, at: number): string {
  return file.toString('latin1', at, at + 16).replace(/\0+$/, '')
}

function pagesProblem(file: Buffer, directory: Buffer): string | undefined {
  const [hashes, pages, end] = [16, 28, 32].map((at) => directory.readUInt32BE(at)) as [
    number,
    number,
    number,
  ]
  const [hashBytes, pageBytes] = [directory.readUInt8(36), 2 ** directory.readUInt8(39)]
  const signed = file.subarray(0, end)
  let wrong = 0
  for (let page = 0; page < pages; page++) {
    const content = signed.subarray(page * pageBytes, (page + 1) * pageBytes)
    const expected = directory.subarray(hashes + page * hashBytes, hashes + (page + 1) * hashBytes)
    if (!createHash('sha256').update(content).digest().subarray(0, hashBytes).equals(expected)) wrong++
  }
  return wrong === 0 ? undefined : `its signature does not fit ${wrong} of ${pages} pages`
}
