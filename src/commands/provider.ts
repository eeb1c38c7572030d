import { existsSync, writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import type { FileAnswers, Question } from '../adapters/sms/file/new-file.ts'
import { docsAt } from '../domain/ground/docs.ts'
import { counted } from '../domain/ground/format.ts'
import { InvalidInput, OperatorError } from '../domain/ground/operator-error.ts'
import { providerGroup } from '../domain/operator/providers.ts'
import { groupCommand } from './actions.ts'
import { type Env, exit, print, printTable } from './common.ts'

/** None of these needs a database. */
export function providerCommands(program: Command, env: Env): void {
  const provider = groupCommand(program, providerGroup)
  provider
    .command('list')
    .description('list the providers of SMS, also those of files')
    .option('--json', 'print JSON')
    .action(async ({ json }: { json?: true }) => {
      const { catalogOf } = await import('../config/providers.ts')
      const rows = catalogOf(env)
        .list()
        .map(({ name, source, file, faults = [] }) => ({
          name,
          source,
          docs: file?.docs ?? null,
          settings: Object.keys(file?.settings ?? {}),
          faults: faults.length,
        }))
      printTable(json, rows, [
        ['PROVIDER', ({ name }) => name],
        ['SOURCE', ({ source }) => source],
        [
          'SETTINGS',
          ({ settings, faults }) => (faults > 0 ? counted(faults, 'fault') : settings.join(', ') || '-'),
        ],
      ])
    })
  provider
    .command('show')
    .description('print the file of a provider as JSON')
    .argument('<name>', 'the name of the provider')
    .action(async (name: string) => {
      const { catalogOf } = await import('../config/providers.ts')
      const catalog = catalogOf(env)
      const checked = catalog.fileOf(name)
      if (!checked) {
        throw new OperatorError(
          catalog.names.includes(name)
            ? `${name} is built in and has no file. ${docsAt(`providers/${name}.md`)} describes it.`
            : `There is no provider ${name}. The providers are ${catalog.names.join(', ')}.`,
        )
      }
      if ('faults' in checked) {
        throw new OperatorError([`The file of ${name} is wrong:`, ...checked.faults].join('\n'))
      }
      print(JSON.stringify(checked.file, null, 2))
    })
  provider
    .command('check')
    .description('check provider files with their own examples, without a network')
    .argument('<file...>', 'the files, such as acme-sms.json')
    .action(async (files: readonly string[]) => {
      const [{ checkPath }, { takenNames }] = await Promise.all([
        import('../adapters/sms/catalog.ts'),
        import('../config/providers.ts'),
      ])
      for (const path of files) {
        const checked = checkPath(path, takenNames)
        const isWrong = 'faults' in checked
        const lines = isWrong ? checked.faults : [`ok, ${checked.file.vectors.length} examples passed`]
        for (const line of lines) print(`${path}: ${line}`)
        if (isWrong) process.exitCode = exit.failed
      }
    })
  provider
    .command('new')
    .description('ask what a gateway needs, and write a provider file without examples')
    .argument('<name>', 'the name of the provider, such as acme-sms')
    .action(async (name: string) => {
      const [{ newFile, questions }, { checkFile }, { takenNames }] = await Promise.all([
        import('../adapters/sms/file/new-file.ts'),
        import('../adapters/sms/file/check.ts'),
        import('../config/providers.ts'),
      ])
      const path = `${name}.json`
      if (!/^[a-z][a-z0-9-]{1,30}$/.test(name)) {
        throw new InvalidInput('The name must be 2 to 31 lower-case letters, digits and hyphens.')
      }
      if (takenNames.providers.has(name)) throw new InvalidInput(`${name} is a built-in provider.`)
      if (existsSync(path)) throw new OperatorError(`${path} exists already.`)
      const file = newFile(name, await answersTo(questions))
      const text = `${JSON.stringify(file, null, 2)}\n`
      writeFileSync(path, text, { flag: 'wx' })
      print(`Wrote ${path}. What is left:`)
      const checked = checkFile(name, text, takenNames)
      for (const fault of 'faults' in checked ? checked.faults : []) print(`- ${fault}`)
      print(`Add examples from the documentation of the gateway, then run: otpost provider check ${path}`)
    })
}

/** From a terminal, or a line of the input for each question. An empty line takes the proposal. */
async function answersTo(questions: readonly Question[]): Promise<FileAnswers> {
  const { createInterface } = await import('node:readline/promises')
  const { stdin: input, stderr: output } = process
  const terminal = createInterface({ input, output })
  const lines = terminal[Symbol.asyncIterator]()
  const answers: Record<string, string> = {}
  try {
    for (const { name, text, usual, valid, isAsked } of questions) {
      if (isAsked && !isAsked(answers)) continue
      for (;;) {
        output.write(usual ? `${text} [${usual}]: ` : `${text}: `)
        const { value, done } = await lines.next()
        if (done) throw new OperatorError('The input ended. Nothing was written.')
        const answer = value.trim() || (usual ?? '')
        answers[name] = answer
        if (valid.test(answer)) break
        output.write('That is not possible here. Try again.\n')
      }
    }
  } finally {
    terminal.close()
  }
  return answers
}
