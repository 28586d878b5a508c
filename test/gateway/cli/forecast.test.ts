/** Tests `floodgate forecast`: the table and the JSON document. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { floodgateCommand } from '#test/support/cli.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const POLICIES = `version: 1
identifiers: { api-key: { source: [{ header: x-api-key }] } }
policies: [{ name: items, route: GET /items, identifier: api-key, limit: 1, window: 1m }]
`;

t.test('prints the forecast as JSON, by default for one request a minute from each client', async (t) => {
  const cwd = temporaryFolder(t);
  writeFileSync(join(cwd, 'policies.yaml'), POLICIES);
  const { code, stdout } = await floodgateCommand(['forecast', '--identities', '6000', '--json'], { cwd });
  t.equal(code, 0);
  const found = JSON.parse(stdout);
  t.match(found, { identities: 6000, requestsPerSecond: 100, processes: 1, redisKeys: 18_000 });
  for (const field of ['redisBytes', 'processBytes', 'commandsPerSecond'])
    t.type(found[field], 'number', field);
  const more = await floodgateCommand(['forecast', '--identities', '12000', '--processes', '3', '--json'], {
    cwd,
  });
  t.ok(JSON.parse(more.stdout).redisBytes > 1.8 * (found.redisBytes - 1_048_576));
  t.ok(JSON.parse(more.stdout).processBytes > 3 * found.processBytes);
});

t.test('1: a file with mistakes; 2: wrong numbers; 3: no file', async (t) => {
  const cwd = temporaryFolder(t);
  t.match(await floodgateCommand(['forecast'], { cwd }), {
    code: 3,
    stderr: /policies\.yaml cannot be read/,
  });
  writeFileSync(join(cwd, 'policies.yaml'), POLICIES.replace('limit: 1', 'limit: 0'));
  t.match(await floodgateCommand(['forecast'], { cwd }), { code: 1, stderr: /policies\.yaml:3:/ });
  const wrong = ['forecast', '--identities', '1.5'];
  t.match(await floodgateCommand(wrong, { cwd }), {
    code: 2,
    stderr: /--identities must be a whole number from 1/,
  });
  t.match(await floodgateCommand(['forecast', '--rate', 'x'], { cwd }), {
    code: 2,
    stderr: /--rate must be a number/,
  });
});
