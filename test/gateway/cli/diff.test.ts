/** Tests `floodgate diff`: it describes which limits change for which clients. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { floodgateCommand } from '#test/support/cli.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const file = (rows: readonly string[], exclude = 'OPTIONS *'): string => `version: 1
identifiers:
  ip: { source: client-address }
  key: { source: [{ header: x-api-key }] }
exclude: ["${exclude}"]
policies:
${rows.map((row) => `  - { ${row} }`).join('\n')}
`;

const OLD = file([
  'name: same, route: GET /same, identifier: ip, limit: 1, window: 1m',
  'name: limit, route: GET /limit, identifier: ip, limit: 100, window: 1m',
  'name: window, route: GET /window, identifier: ip, limit: 60, window: 1m',
  'name: route, route: GET /route, identifier: ip, limit: 1, window: 1m',
  'name: who, route: GET /who, identifier: ip, limit: 1, window: 1m',
  'name: mode, route: GET /mode, identifier: ip, limit: 1, window: 1m, mode: shadow',
  'name: gone, route: GET /gone, identifier: ip, limit: 1, window: 1m',
  'name: algorithm, route: GET /algorithm, identifier: ip, limit: 10, window: 1m',
  'name: cost, route: GET /cost, identifier: ip, limit: 10, window: 1m',
  'name: units, route: GET /units, identifier: ip, limit: 10, window: 1m, cost: 2',
  'name: count, route: GET /count, identifier: ip, limit: 10, window: 1m',
  'name: burst, route: GET /burst, identifier: ip, limit: 10, window: 1m, algorithm: token-bucket',
  'name: before, route: GET /named, identifier: ip, limit: 1, window: 1m',
]);
const NEW = file(
  [
    'name: same, route: GET /same, identifier: ip, limit: 1, window: 1m',
    'name: limit, route: GET /limit, identifier: ip, limit: 60, window: 1m',
    'name: window, route: GET /window, identifier: ip, limit: 60, window: 1h',
    'name: route, route: GET /way, identifier: ip, limit: 1, window: 1m',
    'name: who, route: GET /who, identifier: key, limit: 1, window: 1m',
    'name: mode, route: GET /mode, identifier: ip, limit: 1, window: 1m',
    'name: algorithm, route: GET /algorithm, identifier: ip, limit: 10, window: 1m, algorithm: sliding-window',
    'name: cost, route: GET /cost, identifier: ip, limit: 10, window: 1m, cost: { header: X-Cost }',
    'name: units, route: GET /units, identifier: ip, limit: 10, window: 1m, cost: { replyHeader: X-Tokens, reserve: 3 }',
    'name: count, route: GET /count, identifier: ip, limit: 10, window: 1m, count: failure',
    'name: burst, route: GET /burst, identifier: ip, limit: 10, window: 1m, algorithm: token-bucket, burst: 30',
    'name: after, route: GET /named, identifier: ip, limit: 1, window: 1m',
    'name: new, route: GET /new, identifier: ip, limit: 5, window: 1m',
  ],
  'GET /health',
);

t.test('lists every kind of change with its effect', async (t) => {
  const cwd = temporaryFolder(t);
  writeFileSync(join(cwd, 'old.yaml'), OLD);
  writeFileSync(join(cwd, 'new.yaml'), NEW);
  const { code, stdout } = await floodgateCommand(['diff', 'old.yaml', 'new.yaml', '--json'], { cwd });
  t.equal(code, 0);
  const { changes } = JSON.parse(stdout);
  t.strictSame(
    changes.map(({ kind, policy, from, to }: Record<string, unknown>) => [kind, policy, from, to]),
    [
      ['limit', 'limit', 100, 60],
      ['window', 'window', '60s', '3600s'],
      ['route', 'route', 'GET /route', 'GET /way'],
      ['identifier', 'who', 'ip (address, /64 of IPv6)', 'key (header x-api-key)'],
      ['mode', 'mode', 'shadow', 'enforce'],
      ['algorithm', 'algorithm', 'fixed-window', 'sliding-window'],
      ['cost', 'cost', '1', 'header x-cost'],
      ['cost', 'units', '2', 'header x-tokens of the reply, 3 reserved'],
      ['count', 'count', 'request', 'failure'],
      ['burst', 'burst', 10, 30],
      ['policy-renamed', 'after', 'before', 'after'],
      ['policy-added', 'new', null, 'GET /new'],
      ['policy-removed', 'gone', 'GET /gone', null],
      ['exclude-added', null, null, 'GET /health'],
      ['exclude-removed', null, 'OPTIONS *', null],
    ],
  );
  const effects = Object.fromEntries(
    changes.map(({ kind, effect }: Record<string, string>) => [kind, effect]),
  );
  t.match(effects.limit, /more than 60 requests in 60 s are denied/);
  t.match(effects.window, /60 requests a minute on average become 1; its counters start from zero/);
  t.match(effects.identifier, /counters start from zero/);
  t.match(effects.algorithm, /comes back gradually.*; its counters start from zero/);
  t.match(effects.burst, /30 at once instead of 10/);
  t.match(effects['policy-renamed'], /counters start from zero/);
  t.match(effects.mode, /begins to deny/);

  const people = await floodgateCommand(['diff', 'old.yaml', 'new.yaml'], { cwd });
  t.match(people.stdout, /^limit +limit +100 +60 +clients that make more/m);
  const same = await floodgateCommand(['diff', 'old.yaml', 'old.yaml'], { cwd });
  t.match(same, { code: 0, stdout: 'Nothing changes for anybody.\n' });
});

t.test('a file with a mistake exits with 1, a missing one with 3', async (t) => {
  const cwd = temporaryFolder(t);
  writeFileSync(join(cwd, 'old.yaml'), OLD);
  writeFileSync(join(cwd, 'bad.yaml'), OLD.replace('limit: 100', 'limit: 0'));
  t.match(await floodgateCommand(['diff', 'old.yaml', 'bad.yaml'], { cwd }), {
    code: 1,
    stderr: /bad\.yaml:8:/,
  });
  t.match(await floodgateCommand(['diff', 'old.yaml', 'none.yaml'], { cwd }), { code: 3 });
});

t.test('lists changes of allow and deny with their effect', async (t) => {
  const cwd = temporaryFolder(t);
  const rows = ['name: same, route: GET /same, identifier: ip, limit: 1, window: 1m'];
  const lists = (allow: string, deny: string): string => `${file(rows)}allow: [${allow}]\ndeny: [${deny}]\n`;
  const friend = '{ address: 10.1.0.0/16 }';
  const enemy = '{ address: 10.2.0.0/16 }';
  writeFileSync(join(cwd, 'old.yaml'), lists('', `${enemy}, { route: "* /old/*" }`));
  writeFileSync(join(cwd, 'new.yaml'), lists(friend, '{ route: "* /new/*" }, { address: 10.3.0.0/16 }'));
  const { stdout } = await floodgateCommand(['diff', 'old.yaml', 'new.yaml', '--json'], { cwd });
  t.strictSame(
    JSON.parse(stdout).changes.map(({ kind, from, to, effect }: Record<string, unknown>) => [
      kind,
      from ?? to,
      effect,
    ]),
    [
      ['list-added', 'allow 10.1.0.0/16', 'no policy counts these clients any more'],
      ['list-added', 'deny * /new/* with 403', 'everybody is refused on this route'],
      ['list-added', 'deny 10.3.0.0/16', 'these clients are refused'],
      ['list-removed', 'deny 10.2.0.0/16', 'these clients are treated like all others'],
      ['list-removed', 'deny * /old/* with 403', 'this route is open again'],
    ],
  );
});

t.test('lists a required body field with its effect', async (t) => {
  const cwd = temporaryFolder(t);
  const login = (identifier: string): string =>
    file([`name: login, route: POST /login, identifier: ${identifier}, limit: 1, window: 1m`]);
  writeFileSync(join(cwd, 'old.yaml'), login('{ body: email }'));
  writeFileSync(join(cwd, 'new.yaml'), login('{ body: email, required: true }'));
  const { stdout } = await floodgateCommand(['diff', 'old.yaml', 'new.yaml', '--json'], { cwd });
  t.match(JSON.parse(stdout).changes, [
    { kind: 'required', policy: 'login', from: 'off', to: 'on', effect: /that the gateway can read get 400/ },
  ]);
});
