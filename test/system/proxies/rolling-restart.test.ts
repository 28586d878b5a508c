/** Gateways behind a balancer that does not retry are restarted one after the other. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startUpstream } from '#test/support/gateway.ts';
import { environment, launch } from '#test/support/gateway-process.ts';
import { hammer } from '#test/support/hammer.ts';
import { freePort } from '#test/support/ports.ts';
import type { Started } from '#test/support/process.ts';
import { startHaproxy } from '#test/support/proxy-process.ts';
import { startRedis } from '#test/support/redis.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

const CLIENTS = 16;
/** Never over: the second signal ends the delay. */
const DELAY_MS = '600000';

t.test('no connection is lost behind HAProxy in TCP mode without retries', async (t) => {
  const upstream = await startUpstream(t, (_req, res) => res.end('hello'));
  const redis = await startRedis(t);
  const env = {
    GATEWAY_UPSTREAM: upstream.origin,
    GATEWAY_REDIS_URL: redis.url,
    GATEWAY_DRAIN_DELAY_MS: DELAY_MS,
  };
  // The first one runs in one process, the second one in two.
  const places = [await environment(env), await environment({ ...env, GATEWAY_WORKERS: '2' })];
  const start = async (place: Record<string, string>): Promise<Started> => {
    const gateway = await launch(t, place);
    // One signal to end would only begin the delay.
    t.teardown(() => gateway.child.kill('SIGKILL'));
    return gateway;
  };
  const gateways = await Promise.all(places.map(start));
  const ports = { public: await freePort(), health: await freePort() };
  const folder = temporaryFolder(t);
  const server = (place: Record<string, string>, i: number): string =>
    `  server gateway${i} 127.0.0.1:${place.GATEWAY_PORT} check port ${place.GATEWAY_ADMIN_PORT}`;
  writeFileSync(
    join(folder, 'haproxy.cfg'),
    `
defaults
  timeout connect 60s
  timeout client 60s
  timeout server 60s
  timeout check 60s
  retries 0
listen public
  mode tcp
  bind 127.0.0.1:${ports.public}
  balance roundrobin
  option httpchk GET /readyz
  default-server inter 1s fall 1 rise 1
${places.map(server).join('\n')}
frontend both
  mode http
  bind 127.0.0.1:${ports.health}
  monitor-uri /ready
  monitor fail if { nbsrv(public) lt 2 }
`,
  );
  await startHaproxy(t, join(folder, 'haproxy.cfg'), ports.health);
  const areBothUsed = async (): Promise<boolean> =>
    (await fetch(`http://127.0.0.1:${ports.health}/ready`)).ok;
  await until(areBothUsed);

  const visits = hammer(ports.public, '/x', CLIENTS, { triesOneByOne: 1 });
  t.teardown(() => visits.stop());
  const moreThan = (count: number) => (): boolean => visits.answered() + visits.broken.length > count;
  await until(moreThan(100));
  for (const [i, gateway] of gateways.entries()) {
    await stop(gateway);
    await start(places[i] ?? {});
    await until(areBothUsed);
    await until(moreThan(visits.answered() + 100));
  }
  await visits.stop();
  t.strictSame(visits.broken, [], `of ${visits.answered()} requests`);

  async function stop(gateway: Started): Promise<void> {
    gateway.child.kill('SIGTERM');
    await until(async () => !(await areBothUsed()), 'HAProxy has noticed', gateway);
    await until(moreThan(visits.answered() + 100));
    t.equal(await gateway.stop('SIGTERM'), 0);
  }
});
