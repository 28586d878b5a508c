/** Each example of a help text is a whole line, which can be copied. */
import t from 'tap';
import { COMMANDS } from '#gateway/cli/commands/all.ts';
import { floodgateCommand } from '#test/support/cli.ts';

for (const name of Object.keys(COMMANDS)) {
  t.test(name, async (t) => {
    const { stdout } = await floodgateCommand([name, '--help']);
    const [, examples = ''] = stdout.split('\nExamples:\n');
    const lines = examples.split('\n').filter((line) => line.trim() !== '');
    t.ok(lines.length >= 2, 'has an example');
    for (const [at, line] of lines.entries())
      t.match(
        line,
        at % 2 === 0 ? /^ {2}# [A-Z]\S* .*\S$/ : new RegExp(`^ {2}(\\S.* \\| )?floodgate ${name}( \\S+)*$`),
      );
  });
}
