/**
 * Holds which modules a gateway loads that only limits. The library of each further feature would take megabytes in
 * every process.
 */
import t from 'tap';
import { environment } from '#test/support/gateway-process.ts';
import { holdTo, loadedBy } from '#test/support/loaded-modules.ts';

/** For policies, the upstream and addresses, and for the web framework of the admin listener. */
const PACKAGES = ['ipaddr.js', 'typebox', 'yaml', 'abstract-logging'];

t.test('a gateway with limits loads only the listed modules', async (t) => {
  const env = await environment({ GATEWAY_UPSTREAM: 'http://127.0.0.1:9' });
  const loaded = await loadedBy(t, 'gateway/main.ts', env, async () => {
    const healthy = await fetch(`http://127.0.0.1:${env.GATEWAY_ADMIN_PORT}/healthz`);
    t.equal(healthy.status, 200);
  });
  holdTo(t, loaded, PACKAGES, { own: 300, all: 800 });
  const find = (pattern: RegExp): readonly string[] => loaded.names.filter((name) => pattern.test(name));
  t.same(find(/internal\/deps\/undici/), [], 'the HTTP client of Node is not loaded');
  t.same(find(/^language:/), [], 'the tables of languages are not loaded');
  t.same(
    find(/\/gateway\/(?:cli|request\/proxy-files|tls\/certificate|store\/node|decision-listener\/listener)/),
    [],
    'features that are switched off are not loaded',
  );
});
