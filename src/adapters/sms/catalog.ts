import { isUtf8 } from 'node:buffer'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { type Checked, checkFile, type TakenNames } from './file/check.ts'
import { fileProvider } from './file/file-provider.ts'
import type { ProviderFile } from './file/format.ts'
import { shippedFiles } from './file/shipped/index.ts'
import { providerSpecs } from './index.ts'
import type { SmsProviderSpec } from './provider.ts'

const maxFileBytes = 256 * 1024

type ListedProvider = {
  readonly name: string
  readonly source: 'built-in' | 'shipped' | 'file'
  /** Of a file that was read. */
  readonly file?: ProviderFile
  /** Faults of a file, which cannot be used. */
  readonly faults?: readonly string[]
}

/**
 * The providers of SMS: built in, shipped as files, and those of a folder. A file of the folder takes the place of a shipped one of its
 * name.
 */
export class ProviderCatalog {
  private readonly builtIn = new Map(providerSpecs.map((spec) => [spec.name, spec]))
  private readonly shipped = new Map(shippedFiles.map((file) => [file.provider, file]))
  private readonly own: ReadonlyMap<string, string>
  private readonly read = new Map<string, Checked>()

  /**
   * @param folder of PROVIDER_FILES. Undefined: none
   * @throws an error of the file system if the folder cannot be read
   */
  constructor(
    folder: string | undefined,
    private readonly taken: TakenNames,
  ) {
    const files =
      folder === undefined ? [] : readdirSync(folder).filter((name) => /^[^.].*\.json$/.test(name))
    this.own = new Map(files.map((file) => [basename(file, '.json'), join(folder ?? '', file)]))
  }

  get names(): readonly string[] {
    return [...new Set([...this.builtIn.keys(), ...this.shipped.keys(), ...this.own.keys()])]
  }

  /** The provider, or why there is none, as the rest of a sentence about the setting that names it. An unknown name may be a secret. */
  named(name: string): { readonly spec?: SmsProviderSpec; readonly faults: readonly string[] } {
    const spec = this.builtIn.get(name)
    const path = this.own.get(name)
    if (spec && path === undefined) return { spec, faults: [] }
    const checked = this.fileOf(name)
    if (!checked) {
      return { faults: [`names an unknown provider. The providers are ${this.names.join(', ')}`] }
    }
    return 'file' in checked
      ? { spec: fileProvider(checked.file), faults: [] }
      : { faults: checked.faults.map((fault) => `names ${name}, and ${path} is wrong: ${fault}`) }
  }

  list(): readonly ListedProvider[] {
    return this.names.map((name) => {
      const source = this.own.has(name) ? 'file' : this.shipped.has(name) ? 'shipped' : 'built-in'
      return { name, source, ...this.fileOf(name) }
    })
  }

  fileOf(name: string): Checked | undefined {
    const path = this.own.get(name)
    if (path === undefined) {
      const file = this.shipped.get(name)
      return file && { file }
    }
    let checked = this.read.get(path)
    if (!checked) {
      checked = checkPath(path, this.taken)
      this.read.set(path, checked)
    }
    return checked
  }
}

/** The file of a path, whose name is that of its provider. */
export function checkPath(path: string, taken: TakenNames): Checked {
  try {
    const about = statSync(path)
    // A read of a named pipe may never end.
    if (!about.isFile()) return { faults: ['it is no file'] }
    if (about.size > maxFileBytes) return { faults: [`the file has more than ${maxFileBytes} bytes`] }
    const bytes = readFileSync(path)
    if (!isUtf8(bytes)) return { faults: ['it is not UTF-8'] }
    // Without a byte order mark.
    return checkFile(basename(path, '.json'), new TextDecoder().decode(bytes), taken)
  } catch (error) {
    return { faults: [`it cannot be read (${(error as NodeJS.ErrnoException).code})`] }
  }
}
