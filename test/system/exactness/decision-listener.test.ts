/** The decision listener in a gateway process: workers that share it, reloads, shutdown. */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import t from 'tap';
import { send } from '#test/gateway/proxy/exchange.ts';
import { policyFile } from '#test/support/gateway.ts';
import { environment, startGatewayProcess } from '#test/support/gateway-process.ts';
import { listen } from '#test/support/listen.ts';
import { freePort } from '#test/support/ports.ts';
import { start } from '#test/support/process.ts';
import { sendRaw } from '#test/support/raw.ts';
import { startRedis } from '#test/support/redis.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow } from '#test/support/window.ts';

const ROW = 'name: a, route: "* /a", identifier: ip, limit: 40, window: 366d';
const HEADERS = { 'x-forwarded-method': 'GET', 'x-forwarded-uri': '/a', 'x-forwarded-for': '192.0.2.1' };

const asked = async (more: Record<string, string> = {}): Promise<Record<string, string>> => ({
  GATEWAY_UPSTREAM: 'http://127.0.0.1:9',
  GATEWAY_DECISION_PORT: String(await freePort()),
  GATEWAY_TRUSTED_PROXIES: 'loopback',
  ...more,
});

t.test('workers share the port, and the limit is exact', async (t) => {
  const redis = await startRedis(t);
  const two = await asked({ GATEWAY_WORKERS: '2', GATEWAY_REDIS_URL: redis.url });
  const gateway = await startGatewayProcess(t, two, policyFile(ROW));
  t.match(gateway.output(), `decisions on http://127.0.0.1:${two.GATEWAY_DECISION_PORT}`);
  const port = Number(two.GATEWAY_DECISION_PORT);
  await insideLongWindow();
  const statuses = await Promise.all(
    Array.from({ length: 100 }, async () => (await send(port, '/forward-auth', { headers: HEADERS })).status),
  );
  t.equal(statuses.filter((status) => status === 200).length, 40);
  t.equal(statuses.filter((status) => status === 429).length, 60);
  await until(
    async () =>
      /floodgate_requests_total\{outcome="denied"\} 60/.test(
        await (await fetch(`${gateway.admin}/metrics`)).text(),
      ),
    'the metrics know of all',
  );
});

t.test('a port that is taken ends the start with its variable, with workers too', async (t) => {
  const redis = await startRedis(t);
  const taken = createServer();
  const port = String(await listen(t, taken));
  const workers: readonly Record<string, string>[] = [
    {},
    { GATEWAY_WORKERS: '2', GATEWAY_REDIS_URL: redis.url },
  ];
  for (const more of workers) {
    const taken = await asked({ ...more, GATEWAY_DECISION_PORT: port });
    const gateway = start(['gateway/main.ts'], await environment(taken));
    t.equal(await gateway.ended(), 1);
    t.match(
      gateway.output(),
      `port ${port} is taken; stop the program that has it, or set GATEWAY_DECISION_PORT`,
    );
  }
});

t.test('an edited file that cannot be decided here is refused', async (t) => {
  const gateway = await startGatewayProcess(t, await asked(), policyFile(ROW));
  writeFileSync(
    gateway.env.GATEWAY_POLICIES ?? '',
    policyFile(ROW.replace('40', '1'), 'name: b, route: "* /b", identifier: ip, concurrency: 2'),
  );
  await gateway.until(/the edited policy file is refused/);
  t.match(gateway.output(), /b counts requests in flight/);
  const { headers } = await send(Number(gateway.env.GATEWAY_DECISION_PORT), '/forward-auth', {
    headers: HEADERS,
  });
  t.equal(headers['x-ratelimit-limit'], '40', 'the old policies stay');
});

t.test('SIGTERM: a proxy that keeps its connection open does not keep the gateway', async (t) => {
  const gateway = await startGatewayProcess(t, await asked({ GATEWAY_DRAIN_TIMEOUT_MS: '600000' }));
  const fields = Object.entries(HEADERS).map(([name, value]) => `${name}: ${value}\r\n`);
  const { until, ended } = sendRaw(
    Number(gateway.env.GATEWAY_DECISION_PORT),
    `GET /forward-auth HTTP/1.1\r\nHost: a\r\n${fields.join('')}\r\n`,
  );
  t.match(await until(/\r\n\r\n/), 'Connection: keep-alive');
  t.equal(await gateway.stop('SIGTERM'), 0);
  await ended();
});
