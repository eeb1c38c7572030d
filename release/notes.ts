import { join } from 'node:path'
import { newestSection, readChangelog } from './check.ts'

// Prints the notes of a release: bun release/notes.ts TAG [OWNER/NAME].

const root = join(import.meta.dir, '..')

export interface NoteFacts {
  readonly text: string
  readonly repository: string
  /** Undefined: this is the first release. */
  readonly previousTag: string | undefined
  /** Newest first. */
  readonly commits: readonly { readonly hash: string; readonly subject: string }[]
}

export function notesOf({ text, repository, previousTag, commits }: NoteFacts): string {
  return `${text}

## Check what you downloaded

\`\`\`sh
sha256sum --check --ignore-missing SHA256SUMS
gh attestation verify FILE --repo ${repository}
\`\`\`

The first compares with the checksums beside it, the second says that the file was built here, by this repository's
workflow and from this tag. \`otpost.cdx.json\` (CycloneDX) lists what is inside.

## Commits${previousTag === undefined ? '' : ` since ${previousTag}`}

${commits.map(({ hash, subject }) => `- ${hash} ${escaped(subject)}`).join('\n')}
`
}

/** Escapes Markdown, mentions and issue references. */
function escaped(subject: string): string {
  return subject.replace(/[\\`*_{}[\]<>|~]/g, '\\$&').replace(/([@#])(?=\w)/g, '$1\u200b')
}

/** Without merges. Throws if git does not have the tag. */
export function commitsOf(tag: string, folder = root): Pick<NoteFacts, 'previousTag' | 'commits'> {
  const git = (...args: string[]): string | undefined => {
    const { success, stdout } = Bun.spawnSync(['git', '-C', folder, ...args], { stderr: 'ignore' })
    return success ? stdout.toString().trim() : undefined
  }
  const previousTag = git('describe', '--tags', '--abbrev=0', '--match=v[0-9]*', `${tag}^`)
  const log = git('log', '--no-merges', '--format=%h %s', previousTag ? `${previousTag}..${tag}` : tag)
  if (log === undefined) throw new Error(`git knows no ${tag}`)
  const lines = log.split('\n').filter((line) => line !== '')
  return {
    previousTag,
    commits: lines.map((line) => {
      const space = line.indexOf(' ')
      return { hash: line.slice(0, space), subject: line.slice(space + 1) }
    }),
  }
}

function main(): void {
  const [tag = '', repository = 'OWNER/NAME'] = process.argv.slice(2)
  const section = newestSection(readChangelog())
  if (tag !== `v${section?.version}`)
    throw new Error(`CHANGELOG.md does not begin with the version of ${tag}`)
  process.stdout.write(notesOf({ text: section?.text ?? '', repository, ...commitsOf(tag) }))
}

if (import.meta.main) main()
