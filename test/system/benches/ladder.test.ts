import t from 'tap';
import { DENIED, launchOf } from '#bench/costs/scenarios.ts';
import { RUNGS } from '#bench/ladder/rungs.ts';
import { Processes } from '#bench/run/processes.ts';
import { startRedis } from '#bench/run/redis.ts';
import { startUpstream } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';

/** More than the limits of two windows, so at least one window ends with denials. */
const ASKS_MAX = 250;

t.test('each rung gives the reply of the whole gateway', async (t) => {
  const processes = new Processes();
  t.teardown(() => processes.stopAll());
  const upstream = await startUpstream(t);
  const redis = await startRedis(processes);
  t.teardown(() => redis.stop());
  const upstreamPort = Number(new URL(upstream.origin).port);
  const launch = { processes, upstreamPort, redisPort: redis.port, ...launchOf(DENIED) };
  for (const { name, label, start } of RUNGS) {
    const port = await freePort();
    const server = await start({ ...launch, port });
    let found: Response | undefined;
    for (let i = 0; i < ASKS_MAX && found?.status !== 429; i++) {
      found = await fetch(`http://127.0.0.1:${port}${DENIED.path}`);
      await found.text();
    }
    t.equal(found?.status, 429, `${name}: ${label}`);
    t.ok(found?.headers.get('x-ratelimit-limit'), 'with the limit headers');
    await server.stop();
  }
});
