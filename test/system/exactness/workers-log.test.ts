/** Operators of several workers: one log on one pipe, and refusals by any of them. */
import t from 'tap';
import { floodgateCommand } from '#test/support/cli.ts';
import { policyFile, startUpstream } from '#test/support/gateway.ts';
import { startGatewayProcess } from '#test/support/gateway-process.ts';
import { startRedis } from '#test/support/redis.ts';
import { until } from '#test/support/until.ts';

const REQUESTS = 900;
const LIMIT = 400;

t.test(
  'long lines of three workers on one pipe stay whole, and why knows the refusals of each',
  async (t) => {
    const upstream = await startUpstream(t, (_req, res) => res.end('ok'));
    const redis = await startRedis(t);
    // Enough names to make a line longer than a pipe accepts in one piece.
    const names = Array.from({ length: 70 }, (_, i) => `p${i}-${'x'.repeat(55)}`);
    const row = (name: string, limit: number): string =>
      `name: ${name}, route: "GET /a/*", identifier: ip, limit: ${limit}, window: 366d`;
    const env = { GATEWAY_REDIS_URL: redis.url, GATEWAY_WORKERS: '3', GATEWAY_ACCESS_LOG: '-' };
    const gateway = await startGatewayProcess(
      t,
      { GATEWAY_UPSTREAM: upstream.origin, ...env },
      policyFile(row('limited', LIMIT), ...names.map((name) => row(name, 1_000_000))),
    );
    const { admin } = gateway;
    const refused: string[] = [];
    let sent = 0;
    const client = async (): Promise<void> => {
      while (sent < REQUESTS) {
        const url = `${gateway.origin}/a/${++sent}/${'y'.repeat(900)}`;
        // Uses a new connection each time, which the kernel spreads over the workers.
        const response = await fetch(url, { headers: { connection: 'close' } });
        await response.arrayBuffer();
        const id = response.headers.get('x-gateway-decision');
        if (response.status === 429 && id !== null) refused.push(id);
      }
    };
    await Promise.all(Array.from({ length: 16 }, client));
    t.equal(refused.length, REQUESTS - LIMIT, 'all workers together keep the limit');

    const lines = (): string[] =>
      gateway
        .output()
        .split('\n')
        .filter((line) => line.includes('/a/'));
    await until(() => lines().length >= REQUESTS, 'a line for each request', gateway);
    const read = lines().map(
      (line) => JSON.parse(line) as { path: string; shortened: boolean; id: string | null },
    );
    t.equal(new Set(read.map(({ path }) => path)).size, REQUESTS, 'each request has one whole line');
    t.ok(
      read.every(({ shortened }) => shortened),
      'every path was shortened',
    );
    t.strictSame(new Set(read.flatMap(({ id }) => id ?? [])), new Set(refused));

    const replicas = new Set<string>();
    for (const id of [refused[0], refused.at(-1)]) {
      const { code, stdout } = await floodgateCommand(['why', id ?? '', '--gateway', admin, '--json']);
      if (code !== 0) continue;
      const record = JSON.parse(stdout) as { policy: string; replica: string; limit: number };
      t.match(record, { policy: 'limited', limit: LIMIT });
      replicas.add(record.replica);
    }
    t.ok(replicas.size > 0, 'the admin listener answers in any process');
  },
);
