import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import packageJson from '../package.json'

// Reports why this commit can't be released under a tag: bun release/check.ts TAG.

const root = join(import.meta.dir, '..')

export interface ReleaseFacts {
  /** Such as `v0.1.0`. */
  readonly tag: string
  readonly version: string
  readonly changelog: string
}

/** SemVer 2.0.0 without build metadata. */
const semVer =
  /^(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:-(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*)?$/

/** Empty if the commit can be released. */
export function problemsOf({ tag, version, changelog }: ReleaseFacts): readonly string[] {
  const newest = newestSection(changelog)
  return [
    ...(semVer.test(version) ? [] : [`package.json: ${version} is no version of SemVer`]),
    ...(tag === `v${version}`
      ? []
      : [`the tag is ${tag}, and package.json has ${version}: it must be v${version}`]),
    ...(newest?.version === version
      ? []
      : [`CHANGELOG.md begins with ${newest?.version ?? 'no version'}: it must begin with ${version}`]),
    ...(newest === undefined || isDay(newest.date)
      ? []
      : [
          `CHANGELOG.md: ${newest.version} is dated ${newest.date}: give it the day of the release, as 2026-11-30`,
        ]),
    ...(/^## (?!\S+ - )/m.test(changelog)
      ? [
          'CHANGELOG.md has a heading that is not a version, such as ## 0.1.0 - 2026-11-30: its entries would not be published',
        ]
      : []),
    ...(newest === undefined || newest.text !== '' ? [] : [`CHANGELOG.md says nothing of ${newest.version}`]),
  ]
}

export interface Section {
  readonly version: string
  /** The release date, or `Unreleased`. */
  readonly date: string
  readonly text: string
}

/** The first section of a version, from its heading (`## 0.1.0 - 2026-11-30`) to the next. */
export function newestSection(changelog: string): Section | undefined {
  const [, version = '', date = '', text = ''] =
    /^## (\S+) - (\S+)\n([\s\S]*?)(?=^## |$(?![\s\S]))/m.exec(changelog) ?? []
  return version === '' ? undefined : { version, date, text: text.trim() }
}

function isDay(text: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(text) && new Date(text).toJSON()?.startsWith(text) === true
}

export function readChangelog(): string {
  return readFileSync(join(root, 'CHANGELOG.md'), 'utf8')
}

function main(): void {
  const [tag = ''] = process.argv.slice(2)
  const problems = problemsOf({ tag, version: packageJson.version, changelog: readChangelog() })
  for (const problem of problems) process.stderr.write(`${problem}\n`)
  process.exitCode = problems.length > 0 ? 1 : 0
}

if (import.meta.main) main()
