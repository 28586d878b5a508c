/** Tests how commands read the client from their arguments. */
import t from 'tap';
import { floodgateCommand } from '#test/support/cli.ts';

t.test('a digest that begins with a dash is not read as an option', async (t) => {
  const digest = '-hHC_0EGDBj8EUeVVAyQhx';
  const nobody = ['--gateway', 'http://127.0.0.1:1'];
  for (const args of [
    ['inspect', '--digest', digest],
    ['inspect', digest],
    ['ban', digest, '--for', '1h'],
    ['unban', `--digest=${digest}`],
    // What kind it is, before the subject or behind it.
    ['inspect', 'looks.like.a.host', '--key'],
    ['ban', '--key', 'works', '--for', '1h'],
    ['unban', '--key=works'],
  ]) {
    const { code, stdout, stderr } = await floodgateCommand([...args, ...nobody]);
    t.equal(code, 3, args.join(' '));
    t.equal(stdout, '');
    t.match(stderr, /^no gateway answers on \S+; start it, or name its admin listener with --gateway\n$/);
  }
  t.equal((await floodgateCommand(['inspect', '--digest', ...nobody])).code, 2);
});
