/** `completion`: prints a script that completes commands and options in a shell. */
import { type CommandContext, command } from '#gateway/cli/command/command.ts';
import type { Command, Commands } from '#shared/cli/command.ts';
import { EXIT } from '#shared/cli/exit.ts';

export function completionOf(all: Commands<CommandContext>): Command<CommandContext> {
  return command({
    describe: 'Prints a script that completes commands and options in your shell',
    options: {},
    examples: [['$0 completion >> ~/.bashrc', 'For the shell that SHELL names: zsh, otherwise bash']],
    async run(_, { terminal, env }) {
      const names = Object.keys(all).join(' ');
      const loaded = Object.entries(all).map(async ([name, load]) => {
        const options = Object.entries((await load()).options);
        const named = options.filter(([, { isPositional }]) => isPositional !== true);
        return [name, [...named.map(([option]) => `--${option}`), '--json', '--help'].join(' ')] as const;
      });
      const cases = await Promise.all(loaded);
      terminal.line(/zsh$/.test(env.SHELL ?? '') ? forZsh(names, cases) : forBash(names, cases));
      return EXIT.ok;
    },
  });
}

type Cases = readonly (readonly [command: string, options: string])[];

function forBash(names: string, cases: Cases): string {
  return `_floodgate() {
  local words="${names}"
  if [ "$COMP_CWORD" -gt 1 ]; then
    case "\${COMP_WORDS[1]}" in
${cases.map(([name, options]) => `      ${name}) words="${options}" ;;`).join('\n')}
      *) words="" ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _floodgate floodgate`;
}

function forZsh(names: string, cases: Cases): string {
  return `#compdef floodgate
_floodgate() {
  if (( CURRENT == 2 )); then
    compadd -- ${names}
    return
  fi
  case $words[2] in
${cases.map(([name, options]) => `    ${name}) compadd -- ${options} ;;`).join('\n')}
  esac
  _files
}
compdef _floodgate floodgate`;
}
