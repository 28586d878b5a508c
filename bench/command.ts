/** Defines a command of the bench. */
import { type Command, define, type Given, type Options } from '#shared/cli/command.ts';
import { EXIT } from '#shared/cli/exit.ts';
import type { Terminal } from '#shared/cli/terminal.ts';

export interface BenchContext {
  readonly terminal: Terminal;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export function command<const O extends Options>(definition: {
  readonly describe: string;
  readonly options: O;
  /** @returns false if a check has failed */
  readonly run: (given: Given<O>) => Promise<boolean>;
}): Command<BenchContext> {
  return define({
    ...definition,
    run: async (given: Given<O>) => ((await definition.run(given)) ? EXIT.ok : EXIT.no),
  });
}

/** Defines an option with a list of names, separated by commas. */
export function names<Name extends string>(known: readonly Name[], describe: string) {
  return {
    describe: `${describe}, separated by commas: ${known.join(', ')}`,
    parse(text: string): readonly Name[] {
      const asked = text.split(',').map((part) => part.trim());
      const unknown = asked.filter((part) => !known.some((one) => one === part));
      if (unknown.length > 0) throw new Error(`${unknown.join(', ')} is not one of ${known.join(', ')}`);
      return known.filter((one) => asked.includes(one));
    },
  } as const;
}
