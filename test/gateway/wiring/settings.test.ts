/** The cases of settings.md, and settings of parts. */
import { join } from 'node:path';
import t from 'tap';
import { keptTime } from '#gateway/addresses/part.ts';
import { readConfig } from '#gateway/config.ts';
import { DECISION_VARIABLES, readDecisionSettings } from '#gateway/decision-listener/settings.ts';
import { readPolicyFile } from '#gateway/policy/policy-file.ts';
import { readSettings } from '#shared/configuration.ts';
import { parseTrustedProxies } from '#shared/trusted-proxies.ts';
import { casesUnder } from '#test/support/arrow-cases.ts';
import { partsIn } from '#test/support/parts.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const ASKED = { GATEWAY_DECISION_PORT: '8081', GATEWAY_TRUSTED_PROXIES: 'loopback' };
const under = (heading: string) => casesUnder(join(import.meta.dirname, 'settings.md'), heading);

/** @param text variables with their values */
function read(text: string) {
  const pairs = text === '' ? [] : text.split(' | ').map((pair) => pair.split(/=(.*)/s, 2));
  const { cores, ...env } = Object.fromEntries(pairs);
  return readConfig(env, cores === undefined ? undefined : Number(cores));
}

/** @param path such as `config.workers` */
function valueAt(settings: object, path: string): unknown {
  const step = (at: unknown, name: string): unknown => (at as Readonly<Record<string, unknown>>)[name];
  return path.split('.').reduce(step, settings);
}

for (const heading of [
  'Values',
  'Shares of one client in the bounds',
  'Protocols, and the total of their connections',
])
  t.test(heading, async (t) => {
    for (const [variables = '', values = ''] of under(heading)) {
      const settings = read(variables);
      for (const value of values.split(' | ')) {
        const [name = '', expected = ''] = value.split(': ');
        const path = name.includes('.') ? name : `config.bounds.${name}.perClient`;
        t.strictSame(valueAt(settings, path), JSON.parse(expected), `${variables}: ${name}`);
      }
    }
  });

t.test('a wrong value gets a sentence that says what would be right', async (t) => {
  for (const [variables = '', message = ''] of under('Mistakes')) {
    const name = variables.split(' | ').at(-1)?.split('=')[0] ?? '';
    t.throws(
      () => read(variables),
      { message: new RegExp(`^${name}: .*${RegExp.escape(message.replace(`${name}: `, ''))}`, 'm') },
      variables,
    );
  }
  t.throws(
    () => read('GATEWAY_UPSTREAM=http://:pw@127.0.0.1:3000'),
    { message: /^(?!.*:pw)/s },
    'no password is told',
  );
});

t.test('warnings', async (t) => {
  for (const [variables = '', told = ''] of under('Warnings'))
    t.strictSame(read(variables).gathered.warnings, told === '' ? [] : [told], variables);
  t.match(read('GATEWAY_SHOW_ADDRESSES=10m').gathered.warnings, [/GATEWAY_SHOW_ADDRESSES=10m/]);
  const times = { off: null, '30s': 30_000, '10m': 600_000, '24h': 86_400_000 };
  for (const [value, ms] of Object.entries(times)) t.equal(keptTime(value), ms, value);
});

t.test('GATEWAY_DECISION_PORT: its own port, and a list of proxies', async (t) => {
  const asking = ({ GATEWAY_TRUSTED_PROXIES = 'none', ...env }: Record<string, string>) =>
    readSettings(DECISION_VARIABLES, env, (read) =>
      readDecisionSettings(read, parseTrustedProxies(GATEWAY_TRUSTED_PROXIES), new Set([8080, 9090])),
    );
  t.equal(asking({}), null);
  t.equal(asking({ GATEWAY_TRUSTED_PROXIES: '1' }), null);
  t.strictSame(asking(ASKED), { host: '127.0.0.1', port: 8081, isCredentialProven: false });
  t.match(asking({ ...ASKED, GATEWAY_DECISION_CREDENTIALS: 'proven' }), { isCredentialProven: true });
  t.ok(partsIn(ASKED).includes('decisionListener'));
});

t.test('a policy file that cannot be read: what to do', async (t) => {
  const folder = temporaryFolder(t);
  const file = join(folder, 'none.yaml');
  t.throws(() => readPolicyFile(file), {
    message: `there is no policy file ${file}; "npx floodgate init ${file}" writes one, or set GATEWAY_POLICIES to yours`,
  });
  t.throws(() => readPolicyFile(folder), {
    message: new RegExp(
      `^the policy file ${folder} cannot be read \\(.+\\); set GATEWAY_POLICIES to a file that`,
    ),
  });
});
