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

t.test('GATEWAY_WORKERS=auto starts one for each core, and one without a store', async (t) => {
  const workers = (env: Record<string, string>, cores: number) => {
    const { config, gathered } = readConfig({ GATEWAY_WORKERS: 'auto', ...env }, cores);
    return [config.workers, gathered.warnings.length];
  };
  t.strictSame(workers(REDIS, 6), [6, 0]);
  t.strictSame(workers(REDIS, 1), [1, 0]);
  t.strictSame(workers(REDIS, 200), [64, 0], 'at most 64 workers');
  t.strictSame(workers({}, 6), [1, 1], 'without a store there is one, and a warning');
  t.strictSame(workers({}, 1), [1, 0], 'one core needs no warning');
});

t.test('GATEWAY_WORKERS with a number starts that many', async (t) => {
  t.equal(readConfig({ GATEWAY_WORKERS: '3', ...REDIS }, 1).config.workers, 3);
  t.throws(() => readConfig({ GATEWAY_WORKERS: '3' }, 8), /needs GATEWAY_REDIS_URL/);
  t.throws(() => readConfig({ GATEWAY_WORKERS: 'Auto' }, 8), /"Auto" is not a whole number from 1 to 64/);
});

t.test('GATEWAY_REUSE_PORT is off by default', async (t) => {
  t.equal(readConfig({}).config.reusePort, false);
  t.equal(readConfig({ GATEWAY_REUSE_PORT: '1' }).config.reusePort, true);
});

t.test('GATEWAY_SHOW_ADDRESSES: off, or a time that is logged', async (t) => {
  const warnings = (env: Record<string, string>) => readConfig(env).gathered.warnings;
  t.strictSame(warnings({}), []);
  t.match(warnings({ GATEWAY_SHOW_ADDRESSES: '10m' }), [/GATEWAY_SHOW_ADDRESSES=10m/]);
  for (const [value, ms] of [
    ['off', null],
    ['30s', 30_000],
    ['10m', 600_000],
    ['24h', 86_400_000],
  ] as const)
    t.equal(keptTime(value), ms, value);
  for (const value of ['0m', '25h', '10', 'ten minutes', '1d', '-1m'])
    t.throws(
      () => warnings({ GATEWAY_SHOW_ADDRESSES: value }),
      /GATEWAY_SHOW_ADDRESSES: it must be a time such as 30s, 10m or 24h/,
      value,
    );
});

t.test('GATEWAY_DECISION_PORT: its own port, and a list of proxies', async (t) => {
  const asking = ({ GATEWAY_TRUSTED_PROXIES = 'none', ...env }: Record<string, string>) =>
    readSettings(DECISION_VARIABLES, env, (read) =>
      readDecisionSettings(read, parseTrustedProxies(GATEWAY_TRUSTED_PROXIES), new Set([8080, 9090])),
    );
  const env = { GATEWAY_DECISION_PORT: '8081', GATEWAY_TRUSTED_PROXIES: 'loopback' };
  t.equal(asking({}), null);
  t.equal(asking({ GATEWAY_TRUSTED_PROXIES: '1' }), null);
  t.strictSame(asking(env), {
    host: '127.0.0.1',
    port: 8081,
    isCredentialProven: false,
  });
  t.match(asking({ ...env, GATEWAY_DECISION_CREDENTIALS: 'proven' }), { isCredentialProven: true });
  t.throws(
    () => asking({ GATEWAY_DECISION_PORT: '8081' }),
    /name the proxies that use it in GATEWAY_TRUSTED_PROXIES/,
  );
  t.ok(partsIn(env).includes('decisionListener'));
  for (const port of ['8080', '9090'])
    t.throws(
      () => readConfig({ ...env, GATEWAY_DECISION_PORT: port }),
      new RegExp(`port ${port} is used by another listener`),
    );
  t.throws(() => asking({ ...env, GATEWAY_DECISION_PORT: '0' }), /"0" is not a whole number from 1/);
  t.throws(() => asking({ ...env, GATEWAY_DECISION_CREDENTIALS: 'yes' }), /not one of unproven, proven/);
});

t.test('LOG_LEVEL: the gateway accepts the same values as the survey API', async (t) => {
  t.equal(readConfig({ LOG_LEVEL: 'silent' }).config.logLevel, 'silent');
  t.throws(() => readConfig({ LOG_LEVEL: 'loud' }), /LOG_LEVEL: "loud" is not one of trace, debug/);
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

t.test('GATEWAY_UPSTREAM is not the gateway itself', async (t) => {
  const read = (env: Record<string, string>): unknown => readConfig(env);
  for (const upstream of ['http://127.0.0.1:8080', 'http://localhost:8080', 'http://[::1]:8080'])
    t.throws(
      () => read({ GATEWAY_UPSTREAM: upstream }),
      /^GATEWAY_UPSTREAM: it is the address of this gateway; name the application, and let one of the two use another port$/m,
    );
  t.ok(read({ GATEWAY_UPSTREAM: 'http://127.0.0.1:8080', GATEWAY_PORT: '80' }));
  t.ok(read({ GATEWAY_UPSTREAM: 'http://127.0.0.1:8080', GATEWAY_HOST: '192.0.2.1' }), 'another address');
  t.ok(read({ GATEWAY_UPSTREAM: 'http://app:8080' }));
});

t.test('a policy file that cannot be read: what to do', async (t) => {
  const folder = temporaryFolder(t);
  const file = join(folder, 'none.yaml');
  t.throws(() => readPolicyFile(file), {
    message: `there is no policy file ${file}; "npx floodgate init ${file}" writes one, or set GATEWAY_POLICIES to yours`,
  });
  t.throws(() => readPolicyFile(folder), {
    message: `the policy file ${folder} is a folder; set GATEWAY_POLICIES to the file in it`,
  });
});
