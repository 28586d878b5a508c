import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { launchOf, SCENARIOS, type Scenario } from '#bench/costs/scenarios.ts';
import { rungsOf } from '#bench/ladder/rungs.ts';
import { Processes } from '#bench/run/processes.ts';
import { startRedis } from '#bench/run/redis.ts';
import { freePort } from '#test/support/ports.ts';

/** More than the limits of two windows, so at least one window ends with denials. */
const ASKS_MAX = 250;

function scenario(name: string): Scenario {
  const found = SCENARIOS.find((candidate) => candidate.name === name);
  if (found === undefined) throw new Error(`there is no scenario ${name}`);
  return found;
}

t.test('each rung gives the reply of the whole gateway', async (t) => {
  const processes = new Processes();
  t.teardown(() => processes.stopAll());
  const app = createServer((_, res) => res.end('{}')).listen(0, '127.0.0.1');
  t.teardown(() => app.close().closeAllConnections());
  await once(app, 'listening');
  const { port: upstreamPort } = app.address() as AddressInfo;
  const redis = await startRedis(processes);
  t.teardown(() => redis.stop());

  for (const { name, status } of [
    { name: 'denied', status: 429 },
    { name: 'hot', status: 200 },
  ]) {
    const { path, ...options } = scenario(name);
    const launch = { processes, upstreamPort, redisPort: redis.port, ...launchOf({ path, ...options }) };
    for (const { name: rung, label, start } of rungsOf({ path, ...options })) {
      const port = await freePort();
      const server = await start?.({ ...launch, port });
      let found: Response | undefined;
      for (let i = 0; i < ASKS_MAX && found?.status !== status; i++) {
        found = await fetch(`http://127.0.0.1:${port}${path}`);
        await found.text();
      }
      t.equal(found?.status, status, `${name}, ${rung}: ${label}`);
      t.ok(found?.headers.get('x-ratelimit-limit'), 'with the limit headers');
      await server?.stop();
    }
  }
});
