import { join } from 'node:path';
import t from 'tap';
import { keptTime } from '#gateway/addresses/part.ts';
import { readConfig } from '#gateway/config.ts';
import { DECISION_VARIABLES, readDecisionSettings } from '#gateway/decision-listener/settings.ts';
import { readPolicyFile } from '#gateway/policy/policy-file.ts';
import { readSettings } from '#shared/configuration.ts';
import { parseTrustedProxies } from '#shared/trusted-proxies.ts';
import { partsIn } from '#test/support/parts.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const REDIS = { GATEWAY_REDIS_URL: 'redis://127.0.0.1:6379' };
const ASKED = { GATEWAY_DECISION_PORT: '8081', GATEWAY_TRUSTED_PROXIES: 'loopback' };

t.test('GATEWAY_WORKERS: a number, or one for each core, and one without a store', async (t) => {
  for (const [env, cores, workers, warnings] of [
    [{ GATEWAY_WORKERS: 'auto', ...REDIS }, 6, 6, 0],
    [{ GATEWAY_WORKERS: 'auto', ...REDIS }, 200, 64, 0],
    [{ GATEWAY_WORKERS: 'auto' }, 6, 1, 1],
    [{ GATEWAY_WORKERS: 'auto' }, 1, 1, 0],
    [{ GATEWAY_WORKERS: '3', ...REDIS }, 1, 3, 0],
  ] as const) {
    const { config, gathered } = readConfig(env, cores);
    t.strictSame([config.workers, gathered.warnings.length], [workers, warnings], JSON.stringify(env));
  }
});

t.test('a wrong value gets a sentence that says what would be right', async (t) => {
  const ITSELF =
    /^GATEWAY_UPSTREAM: it is the address of this gateway; name the application, and let one of the two use another port$/m;
  const TIME = /GATEWAY_SHOW_ADDRESSES: it must be a time such as 30s, 10m or 24h/;
  for (const [name, value, told] of [
    ['GATEWAY_WORKERS', '3', /needs GATEWAY_REDIS_URL/],
    ['GATEWAY_WORKERS', 'Auto', /"Auto" is not a whole number from 1 to 64/],
    ['LOG_LEVEL', 'loud', /LOG_LEVEL: "loud" is not one of trace, debug/],
    ['GATEWAY_ADMIN_TOKEN', 'Schlüssel', /GATEWAY_ADMIN_TOKEN: it must consist of ASCII characters/],
    ['GATEWAY_UPSTREAM', 'http://:pw@127.0.0.1:3000', /GATEWAY_UPSTREAM: it must be an origin(?!.*:pw)/s],
    ...['http://127.0.0.1:8080', 'http://localhost:8080', 'http://[::1]:8080'].map(
      (upstream) => ['GATEWAY_UPSTREAM', upstream, ITSELF] as const,
    ),
    ...['0m', '25h', '10', 'ten minutes', '1d', '-1m'].map(
      (time) => ['GATEWAY_SHOW_ADDRESSES', time, TIME] as const,
    ),
    ...['8080', '9090'].map(
      (port) =>
        ['GATEWAY_DECISION_PORT', port, new RegExp(`port ${port} is used by another listener`)] as const,
    ),
  ] as const)
    t.throws(
      () => readConfig({ GATEWAY_TRUSTED_PROXIES: 'loopback', [name]: value }, 8),
      told,
      `${name}=${value}`,
    );
  const upstream = { GATEWAY_UPSTREAM: 'http://127.0.0.1:8080' };
  for (const env of [{ GATEWAY_PORT: '80' }, { GATEWAY_HOST: '192.0.2.1' }])
    t.ok(readConfig({ ...upstream, ...env }), 'the gateway listens elsewhere');
});

t.test('GATEWAY_SHOW_ADDRESSES: off, or a time that is logged', async (t) => {
  const warnings = (env: Record<string, string>) => readConfig(env).gathered.warnings;
  t.strictSame(warnings({}), []);
  t.match(warnings({ GATEWAY_SHOW_ADDRESSES: '10m' }), [/GATEWAY_SHOW_ADDRESSES=10m/]);
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
  const nobody = { GATEWAY_DECISION_PORT: '8081' };
  t.throws(() => asking(nobody), /name the proxies that use it in GATEWAY_TRUSTED_PROXIES/);
  t.ok(partsIn(ASKED).includes('decisionListener'));
  t.throws(() => asking({ ...ASKED, GATEWAY_DECISION_PORT: '0' }), /"0" is not a whole number from 1/);
  t.throws(() => asking({ ...ASKED, GATEWAY_DECISION_CREDENTIALS: 'yes' }), /not one of unproven, proven/);
});

t.test('a variable that is no setting gets a warning, with the name that was probably meant', async (t) => {
  const warnings = (name: string): readonly string[] => readConfig({ [name]: 'x' }).gathered.warnings;
  for (const [name, meant] of [
    ['GATEWAY_POLICY', 'GATEWAY_POLICIES'],
    ['GATEWAY_REDIS', 'GATEWAY_REDIS_URL'],
    ['GATEWAY_TRUSTED_PROXY', 'GATEWAY_TRUSTED_PROXIES'],
    ['GATEWAY_UPSTREAM_URL', 'GATEWAY_UPSTREAM'],
  ] as const)
    t.strictSame(warnings(name), [`${name} is not a setting and has no effect; did you mean ${meant}?`]);
  t.strictSame(warnings('GATEWAY_COLOUR_SCHEME'), [
    'GATEWAY_COLOUR_SCHEME is not a setting and has no effect; unset it',
  ]);
  // Kubernetes sets these for a service with the name "gateway".
  for (const name of ['GATEWAY_SERVICE_HOST', 'GATEWAY_PORT_8080_TCP_ADDR', 'POLICIES'])
    t.strictSame(warnings(name), [], name);
  t.strictSame(readConfig({ GATEWAY_POLICY: ' ' }).gathered.warnings, [], 'a blank value counts as unset');
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
