import type { Command } from 'commander'
import { InvalidInput, OperatorError } from '../domain/ground/operator-error.ts'
import { commandActor, type Env, listOfPairs, print, several, withApp } from './common.ts'

export const valueMeaning = `the value of a variable; ${several}; other variables have samples`

export const draftMeaning = 'with the draft, in place of the published text'

export function testCommands(program: Command, env: Env): void {
  program
    .command('test-send')
    .description('send a test message')
    .argument('<recipient>', 'a phone number as in API requests, or an e-mail address')
    .option('--provider <name>', 'call only this provider, also while its circuit is open')
    .option('--brand <slug>', 'the brand whose name, destination rules and budget apply')
    .option('--template <key>', 'a template of the brand; the default says that it is a test')
    .option('--lang <tag>', "the language of the text; the default is the brand's")
    .option('--value <name=value>', valueMeaning, listOfPairs)
    .option('--draft', draftMeaning)
    .addHelpText(
      'after',
      `
A code is 123456, and no request can verify it. The provider bills an SMS. The command exits with status 1 unless a
provider accepted the message.`,
    )
    .action(async (to: string, { template: key, value, draft: isDraft, ...test }: TestOptions) => {
      const { testResult } = await import('../domain/operator/test-send.ts')
      const asked = { ...test, to, key, values: valuesIn(value), isDraft }
      await withApp(env, async (app) => {
        app.context.requireSecret()
        const sent = await app.sendTest(await commandActor(env), asked)
        const result = testResult(sent)
        if (sent.outcome.kind !== 'accepted') {
          throw new OperatorError(`${result} \`otpost explain ${sent.requestId}\` has the attempts.`)
        }
        print(`${result} Request ${sent.requestId}.`)
      })
    })
}

interface TestOptions {
  provider?: string
  brand?: string
  template?: string
  lang?: string
  draft?: true
  value?: readonly string[]
}

/** @throws OperatorError */
export function valuesIn(values: readonly string[] = []): Readonly<Record<string, string>> {
  return Object.fromEntries(
    values.map((each) => {
      const [, name, value] = /^(\w+)=(.*)$/s.exec(each) ?? []
      if (name !== undefined && value !== undefined) return [name, value]
      throw new InvalidInput(`The value ${JSON.stringify(each)} must be name=value, such as orderId=A-1042.`)
    }),
  )
}
