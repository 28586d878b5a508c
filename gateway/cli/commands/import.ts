/** `import FILE`: converts another product's limits to a policy file. */
import { text as textOf } from 'node:stream/consumers';
import { readText } from '#gateway/cli/command/arguments.ts';
import { type AddCommand, type CommandContext, STANDARD_INPUT } from '#gateway/cli/command/command.ts';
import { importText, PRODUCTS } from '#gateway/workbench/import/import.ts';
import { ImportError, type Product } from '#gateway/workbench/import/imported.ts';
import { CommandError, EXIT, type ExitCode } from '#shared/cli/exit.ts';

interface ImportOptions {
  readonly file: string;
  readonly from: Product | undefined;
  readonly json: boolean;
}

export const addImport: AddCommand = (program, context) =>
  program.command(
    'import <file>',
    'The limits of Envoy Gateway, envoyproxy/ratelimit, NGINX, Traefik or Kong as a policy file',
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
          '$0 import nginx.conf > policies.yaml',
          'Names the source of each row, and the parts that cannot be converted',
        )
        .example(
          'kubectl get backendtrafficpolicy,httproute -o yaml | $0 import -',
          'Converts the limits of a cluster with Envoy Gateway',
        ),
    (options) => context.run(() => run(options, context)),
  );

async function run(
  { file, from, json }: ImportOptions,
  { terminal, stdin }: CommandContext,
): Promise<ExitCode> {
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
  const { policies, unsupported, text } = result;
  if (json) terminal.json({ from: result.from, file, policies, unsupported, text });
  else if (policies.length === 0) {
    for (const { line, what, reason } of unsupported)
      terminal.error(`${file}:${line}: not carried over: ${what}: ${reason}`);
    terminal.error(`${file}: no limit that can be carried over`);
  } else {
    terminal.line(text.trimEnd());
    const lost =
      unsupported.length === 0
        ? ''
        : `; not carried over: ${unsupported.length}, see the comments at its top`;
    terminal.error(`policies: ${policies.length}${lost}`);
  }
  return policies.length === 0 ? EXIT.no : EXIT.ok;
}
