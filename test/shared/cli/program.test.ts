/** Reads the arguments of a command by its table, and says what is wrong with them. */
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { define, type Program, whole } from '#shared/cli/command.ts';
import { CommandError, EXIT } from '#shared/cli/exit.ts';
import { runProgram } from '#shared/cli/program.ts';
import { Terminal } from '#shared/cli/terminal.ts';

interface Context {
  readonly terminal: Terminal;
  readonly env: Readonly<Record<string, string>>;
}

const TRY = define({
  describe: 'Tries',
  options: {
    files: { isPositional: true, isList: true, isRequired: true, describe: 'Files' },
    name: { isRequired: true, describe: 'Name' },
    header: { short: 'H', isList: true, describe: 'Header' },
    count: { parse: whole(1, 9), default: '2', describe: 'Count' },
    kind: { choices: ['a', 'b'], describe: 'Kind' },
    place: { variable: 'PLACE', default: 'here', describe: 'Place' },
    quick: { isFlag: true, describe: 'Quick' },
  },
  examples: [['$0 try a', 'Tries a']],
  run({ json, ...given }, { terminal }: Context) {
    terminal.json({ json, ...given });
    if (given.quick) throw new CommandError('too quick', EXIT.unreachable);
    return EXIT.no;
  },
});

const PROGRAM: Program<Context> = {
  name: 'prog',
  about: 'About',
  version: '1',
  groups: {
    Some: {
      try: async () => TRY,
      'data copy': async () => define({ describe: 'Copies', options: {}, run: () => EXIT.ok }),
    },
  },
  epilogue: 'End',
  exitCodeOf: () => null,
};

async function call(...args: readonly string[]) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const said = Promise.all([text(stdout), text(stderr)]);
  const context = { terminal: new Terminal({ stdout, stderr }), env: { PLACE: 'there' } };
  const code = await runProgram(PROGRAM, args, context);
  stdout.end();
  stderr.end();
  const [out, error] = await said;
  return { code, out, error };
}

t.test('reads values, lists, flags, defaults and variables', async (t) => {
  const { code, out } = await call('--json', 'try', 'a', '-', '--name', 'x', '-H', '1', '--header=2');
  t.equal(code, EXIT.no);
  t.strictSame(JSON.parse(out), {
    ...{
      json: true,
      files: ['a', '-'],
      name: 'x',
      header: ['1', '2'],
      count: 2,
      place: 'there',
      quick: false,
    },
  });
  t.match(await call('try', 'a', '--name', 'x', '--quick'), { code: EXIT.unreachable, error: 'too quick\n' });
  t.match(await call('data', 'copy'), { code: EXIT.ok });
});

t.test('wrong arguments exit with 2 and say what is wrong', async (t) => {
  const cases: Readonly<Record<string, readonly string[]>> = {
    'Name a command; "prog --help" lists them.': [],
    'Name a command: copy.': ['data'],
    'Unknown command: tri. Did you mean try?': ['tri'],
    'Unknown command: attempt. "prog --help" lists them.': ['attempt'],
    'FILES is missing': ['try', '--name', 'x'],
    '--name is missing': ['try', 'a'],
    '--count: "10" is no whole number from 1 to 9': ['try', 'a', '--name', 'x', '--count', '10'],
    '--kind is "c", and can be a, b': ['try', 'a', '--name', 'x', '--kind', 'c'],
    "Unknown option '--colour'": ['try', 'a', '--colour'],
    "Option '--name' needs a value, such as --name VALUE": ['try', 'a', '--name', '--quick'],
    '"b" is one argument too many': ['data', 'copy', 'b'],
  };
  for (const [message, args] of Object.entries(cases)) {
    const { code, error } = await call(...args);
    t.equal(code, EXIT.usage, message);
    t.ok(error.startsWith(message), `${message}: ${error}`);
  }
});

t.test('the help of the program, of a group and of a command', async (t) => {
  t.match((await call('--help')).out, /^ {2}prog try <files\.\.> {2}Tries$/m);
  t.match((await call('data', '-h')).out, /^prog data copy\n\nCopies$/m);
  const { out } = await call('try', '--help');
  t.match(out, /^ {2}-H, --header +Header {2}\[may be given several times\]$/m);
  t.match(out, /^ {2}--place +Place {2}\[default: PLACE, or here\]$/m);
  t.match(out, /Examples:\n {2}# Tries a\n {2}prog try a\n/);
  t.match(await call('--version'), { code: 0, out: '1\n' });
});
