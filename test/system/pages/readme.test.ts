/** Runs each block of the README, and compares the output with the page. */
import { join } from 'node:path';
import t from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { readPage } from '#test/docs/pages.ts';
import { comparable, startProduct } from '#test/docs/product.ts';
import { startShell } from '#test/docs/shell.ts';
import { floodgate } from '#test/support/cli.ts';
import { startUpstream } from '#test/support/gateway.ts';
import { policiesWithoutEdges } from '#test/support/policies-without-edges.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const page = readPage('README.md');
const [own, policies, picture, install, docker, exceed, reply, ...more] = page.blocks;

t.test('its length, and every block is run', async (t) => {
  const lines = page.text.split('\n').length - 1;
  t.ok(lines >= 120 && lines <= 180, `${lines} lines`);
  t.strictSame(more, []);
  // There is no Docker here: docker-lines.test.ts checks the files that these commands read.
  t.match(docker?.text, /^docker build --target api -t floodgate-api \.\ndocker run /);
  t.match(picture, { language: 'mermaid' });
});

t.test('two commands, and a 429 as shown', async (t) => {
  // The first command has already run, because this test needs it.
  t.equal(install?.text, 'npm ci\nnpm start\n');
  const product = await startProduct(t, 'npm start', { GATEWAY_POLICIES: policiesWithoutEdges(t) });
  const shell = startShell(t, temporaryFolder(t));
  const output = await shell.run(exceed?.text.replaceAll('http://localhost:8080', product.origin) ?? '');
  t.strictSame(output.split('\n').slice(0, 6), ['404', '404', '404', '404', '404', '429']);
  const [head = ''] = output.slice(output.indexOf('HTTP/1.1')).split('\r\n\r\n');
  const fields = comparable(head);
  for (const line of comparable(reply?.text ?? '')) t.ok(fields.includes(line), line);
});

t.test('in front of an application, in three commands', async (t) => {
  const upstream = await startUpstream(t, (_req, res) => res.end('the application'));
  const folder = temporaryFolder(t);
  const file = join(folder, 'my-policies.yaml');
  const [ci, init, command = ''] = own?.text.split('\n') ?? [];
  // The first command has already run, because this test needs it.
  t.strictSame([ci, init], ['npm ci', 'npx floodgate init my-policies.yaml']);
  t.match(await floodgate(['init', file]), { code: 0 });
  t.match(command, /^GATEWAY_UPSTREAM=http:\/\/127.0.0.1:3000 GATEWAY_POLICIES=my-policies.yaml /);
  const started = command.replace('http://127.0.0.1:3000', upstream.origin).replace('my-policies.yaml', file);
  const product = await startProduct(t, started);
  t.equal(await (await fetch(product.origin)).text(), 'the application');
});

t.test('the policy file of the page is valid', async (t) => {
  const set = loadPolicies(policies?.text ?? '', 'README.md');
  t.strictSame(
    set.policies.map(({ name }) => name),
    ['login'],
  );
});
