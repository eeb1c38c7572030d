import { describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { basename, join } from 'node:path'
import packageJson from '../../package.json'
import { createProgram } from '../../src/commands/program.ts'
import { pages, problemsOf, root, samplesIn } from './pages.ts'
import { problemOfCall } from './program.ts'
import { commandsIn, type ShellCommand } from './shell.ts'

describe('commands', () => {
  const program = createProgram({})

  /** Returns the problem of a script's command. Undefined for a correct command, or one of another program. */
  function problemOf({ assigned, words: [name = '', ...args] }: ShellCommand): string | undefined {
    // The binary then runs as Bun.
    if (assigned.includes('BUN_BE_BUN')) return undefined
    if (name === 'npx') {
      const [bun, ...rest] = args.filter((arg) => arg !== '-y')
      if (!bun?.startsWith('bun@')) return undefined
      return `>=${bun.slice(4)}` === packageJson.engines.bun
        ? problemOfBun(rest)
        : `${bun} is not the version that is tested`
    }
    if (name === 'bun') return problemOfBun(args)
    if (name === 'sudo' || name === 'exec') {
      const [asked = '', ...rest] = args[0] === '-u' ? args.slice(2) : args
      return problemOf({ assigned, words: [asked, ...rest] })
    }
    return basename(name) === 'otpost' ? problemOfCall(program, args, true) : undefined
  }

  function problemOfBun([first = '', ...args]: readonly string[]): string | undefined {
    if (first === 'run') {
      const [script = '', ...rest] = args
      if (!Object.hasOwn(packageJson.scripts, script)) return `there is no script ${script}`
      return script === 'otpost' ? problemOfCall(program, rest, true) : undefined
    }
    if (/\.ts$/.test(first)) {
      if (!existsSync(join(root, first))) return `there is no ${first}`
      return first === 'src/main.ts' ? problemOfCall(program, args, true) : undefined
    }
    const missing =
      first === 'test' ? args.find((arg) => !arg.startsWith('-') && !existsSync(join(root, arg))) : undefined
    return missing === undefined ? undefined : `there is no ${missing}`
  }

  test('the check finds unknown commands and options', () => {
    const found = (script: string) =>
      commandsIn(script)
        .map(problemOf)
        .filter((problem) => problem !== undefined)
    expect(found('X=1 otpost brand put acme --name "A B" > file # and more\notpost serve')).toEqual([])
    expect(found('npx -y bun@1.4.5 run demo && bun run otpost brand list | head')).toEqual([])
    expect(found('echo "$(otpost brand lst)"')).toEqual(['otpost brand has no command lst'])
    expect(found('sudo -u otpost otpost brand put acme --nam x')).toEqual([
      'otpost brand put has no option --nam',
    ])
    expect(found('otpost explain')).toEqual(['otpost explain needs 1 operands'])
    expect(found('otpost migrate now')).toEqual(['otpost migrate takes 0 operands, not now'])
    expect(found('bun run dmo; bun src/man.ts; bun test test/non')).toEqual([
      'there is no script dmo',
      'there is no src/man.ts',
      'there is no test/non',
    ])
    expect(found('npx -y bun@1.4.4 run demo')).toEqual(['bun@1.4.4 is not the version that is tested'])
  })

  test('in samples exist, with their options', () => {
    expect(
      problemsOf(
        samplesIn('sh', 'bash'),
        ({ code }) =>
          commandsIn(code)
            .map(problemOf)
            .filter((problem) => problem !== undefined)[0],
      ),
    ).toEqual([])
  })

  test('in sentences and tables exist, with their options', () => {
    const problems = pages.flatMap(({ path, spans }) =>
      spans
        .filter((span) => /^otpost (?!\d)/.test(span))
        .map((span) => {
          const words = span.replace(/[[\]|]|\.\.\.|…/g, ' ').split(/\s+/)
          return [
            span,
            problemOfCall(
              program,
              words.slice(1).filter((word) => word !== ''),
              false,
            ),
          ] as const
        })
        .filter(
          ([span, problem]) => problem !== undefined && !/takes \d+ operands/.test(problem) && span !== '',
        )
        .map(([span, problem]) => `${path}: ${span}: ${problem}`),
    )
    expect(problems).toEqual([])
  })
})
