/** `import FILE`: converts another product's limits to a policy file. */
import { text as textOf } from 'node:stream/consumers';
import { readText } from '#gateway/cli/command/arguments.ts';
import { type AddCommand, STANDARD_INPUT } from '#gateway/cli/command/command.ts';
import { importText, PRODUCTS } from '#gateway/workbench/import/import.ts';
import { ImportError } from '#gateway/workbench/import/imported.ts';
import { summaryOf } from '#gateway/workbench/import/policy-text.ts';
import { CommandError, EXIT } from '#shared/cli/exit.ts';
import { copyable } from '#shared/cli/program.ts';

export const addImport: AddCommand = (program, context) =>
  program.command(
    'import <file>',
    'The limits of Envoy Gateway or envoyproxy/ratelimit as a policy file',
    (command) =>
      command
        .positional('file', {
          type: 'string',
          demandOption: true,
          describe: 'Configuration of that product; - for standard input',
        })
        .option('from', {
          choices: PRODUCTS,
          describe: 'Product of the file; detected from its content by default',
        })
        .example(
          ...copyable(
            'kubectl get backendtrafficpolicy,httproute -o yaml | $0 import -',
            'Names the source of each row, and the limits that are lost',
          ),
        ),
    ({ file, from, json }) =>
      context.run(async () => {
        const { terminal, stdin } = context;
        const isStdin = file === STANDARD_INPUT;
        if (isStdin && stdin.isTTY)
          throw new CommandError('nothing comes on standard input; name a file, or pipe one', EXIT.usage);
        const input = isStdin ? await textOf(stdin) : readText(file, 'name a file, or - for standard input');
        let result: ReturnType<typeof importText>;
        try {
          result = importText(input, file, from ?? null);
        } catch (error) {
          if (!(error instanceof ImportError)) throw error;
          throw new CommandError(`${file} cannot be imported: ${error.message}`, EXIT.no);
        }
        const { policies, unsupported, limits, text } = result;
        if (json) terminal.json({ from: result.from, file, limits, policies, unsupported, text });
        else if (policies.length === 0) {
          for (const { line, what, reason } of unsupported)
            terminal.error(`${file}:${line}: not carried over: ${what}: ${reason}`);
          terminal.error(`${file}: no limit that can be carried over`);
        } else {
          terminal.line(text.trimEnd());
          terminal.error(`${summaryOf(limits)}; the comments of the file say why`);
        }
        return policies.length === 0 ? EXIT.no : EXIT.ok;
      }),
  );
