import { Argument, type Command } from 'commander'
import { print } from './common.ts'

const shells = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof shells)[number]

const help = `
To load it in each shell:
  bash  echo 'source <(otpost completion bash)' >> ~/.bashrc
  zsh   echo 'source <(otpost completion zsh)' >> ~/.zshrc, after compinit
  fish  otpost completion fish > ~/.config/fish/completions/otpost.fish`

export function completionCommands(program: Command): void {
  program
    .command('completion')
    .description('print a script that completes commands, options and their values in a shell')
    .addArgument(new Argument('<shell>', 'the shell').choices(shells))
    .addHelpText('after', help)
    .action((shell: Shell) => print(scripts[shell](placesIn(program))))
}

type CommandWords = ReturnType<typeof wordsOf>

/** What can follow a command. @param path such as ` brand put`; empty for the program itself */
function wordsOf(command: Command, path: string) {
  const options = command.createHelp().visibleOptions(command)
  return {
    path,
    commands: subcommandsOf(command).map((each) => ({ name: each.name(), description: each.description() })),
    options: options.flatMap(({ long, description, required, optional, argChoices: choices = [] }) =>
      long ? [{ name: long, description, takesValue: required || optional, choices }] : [],
    ),
    /** The choices of its arguments. */
    values: command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices),
  }
}

function subcommandsOf(command: Command): readonly Command[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .filter((each) => each.name() !== 'help')
}

function placesIn(command: Command, path = ''): readonly CommandWords[] {
  const below = subcommandsOf(command).flatMap((each) => placesIn(each, `${path} ${each.name()}`))
  return [wordsOf(command, path), ...below]
}

const scripts: Readonly<Record<Shell, (places: readonly CommandWords[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
}

/** In single quotes, for each of the three shells. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

/** `case` patterns of every command, to find the command that a line is at. */
function pathPattern(places: readonly CommandWords[], separator: string): string {
  return places
    .filter(({ path }) => path !== '')
    .map(({ path }) => quoted(path))
    .join(separator)
}

function valueCases(
  places: readonly CommandWords[],
  line: (words: readonly string[]) => string,
): readonly string[] {
  return places.flatMap(({ path, options }) =>
    options
      .filter(({ takesValue }) => takesValue)
      .map(({ name, choices }) => `    ${quoted(`${path} ${name}`)}) ${line(choices)}; return ;;`),
  )
}

function bashScript(places: readonly CommandWords[]): string {
  const words = ({ commands, options, values }: CommandWords) =>
    quoted([...commands, ...options, ...values.map((name) => ({ name }))].map(({ name }) => name).join(' '))
  return `# Completion of otpost for bash. Created by: otpost completion bash
_otpost() {
  local cur=\${COMP_WORDS[COMP_CWORD]} at='' word words='' i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    case "$at $word" in
      ${pathPattern(places, '|')}) at="$at $word" ;;
    esac
  done
  COMPREPLY=()
  case "$at \${COMP_WORDS[COMP_CWORD-1]}" in
${valueCases(places, (choices) => `COMPREPLY=($(compgen -W ${quoted(choices.join(' '))} -- "$cur"))`).join('\n')}
  esac
  case "$at" in
${places.map((place) => `    ${quoted(place.path)}) words=${words(place)} ;;`).join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _otpost otpost`
}

function zshScript(places: readonly CommandWords[]): string {
  const described = ({ commands, options, values }: CommandWords) =>
    [...commands, ...options, ...values.map((name) => ({ name, description: '' }))]
      .map(({ name, description }) => quoted(`${name}:${description.replaceAll('`', '')}`))
      .join(' ')
  return `#compdef otpost
# Completion of otpost for zsh. Created by: otpost completion zsh
_otpost() {
  local at='' word
  local -a found
  for word in \${words[2,CURRENT-1]}; do
    case "$at $word" in
      ${pathPattern(places, '|')}) at="$at $word" ;;
    esac
  done
  case "$at \${words[CURRENT-1]}" in
${valueCases(places, (choices) => (choices.length > 0 ? `compadd -- ${choices.map(quoted).join(' ')}` : '_files')).join('\n')}
  esac
  case "$at" in
${places.map((place) => `    ${quoted(place.path)}) found=(${described(place)}) ;;`).join('\n')}
  esac
  _describe otpost found || _files
}
compdef _otpost otpost`
}

function fishScript(places: readonly CommandWords[]): string {
  const lines = places.flatMap(({ path, commands, options, values }) => {
    const at = `complete -c otpost -n ${quoted(`__otpost_at "${path}"`)}`
    return [
      ...commands.map(({ name, description }) => `${at} -f -a ${quoted(name)} -d ${quoted(description)}`),
      ...(values.length > 0 ? [`${at} -f -a ${quoted(values.join(' '))}`] : []),
      ...options.map(({ name, description, takesValue, choices }) =>
        [
          at,
          `-l ${name.replace(/^--/, '')}`,
          ...(takesValue ? ['-r'] : []),
          ...(choices.length > 0 ? ['-f', '-a', quoted(choices.join(' '))] : []),
          '-d',
          quoted(description),
        ].join(' '),
      ),
    ]
  })
  return `# Completion of otpost for fish. Created by: otpost completion fish
function __otpost_at
  set -l at ''
  for word in (commandline -opc)[2..]
    switch "$at $word"
      case ${pathPattern(places, ' ')}
        set at "$at $word"
    end
  end
  test "$at" = "$argv[1]"
end
${lines.join('\n')}`
}
