/** A replay of the gateway's log makes the same decisions as the gateway, for random requests. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { Judge } from '#gateway/workbench/replay/judge.ts';
import { LogFiles } from '#gateway/workbench/replay/log-files.ts';
import { replay } from '#gateway/workbench/replay/replay.ts';
import { testClock } from '#test/support/clock.ts';
import { BEHIND_PROXY, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { Lane } from '#test/support/lane.ts';
import { type Dice, dice } from '#test/support/seed.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

const LANES = 20;
const PER_ROUND = 10;

const POLICIES = `version: 1
identifiers:
  ip: { source: client-address }
  network: { source: client-address, ipv6Prefix: 48 }
  api-key: { source: [{ header: x-api-key }, { bearer: fbk_ }] }
  token: { source: [{ header: x-token }] }
exclude: [OPTIONS *, GET /items/health]
policies:
  - { name: login, route: POST /login, identifier: ip, limit: 5, window: 10s }
  - { name: login-hour, route: POST /login, identifier: network, limit: 40, window: 5m }
  - { name: items, route: "GET,POST /items/*", identifier: api-key, limit: 8, window: 10s }
  - { name: item, route: "GET /items/{id}", identifier: api-key, limit: 12, window: 1m }
  - { name: write, route: "POST /items/{id}", identifier: api-key, limit: 3, window: 10s, bucket: writes }
  - { name: change, route: "PUT,DELETE /items/{id}", identifier: api-key, limit: 3, window: 10s, bucket: writes }
  - { name: tokens, route: "GET /items/{id}/parts", identifier: token, limit: 2, window: 7s }
  - { name: tried, route: "* /items/*", identifier: ip, limit: 20, window: 10s, mode: shadow }
  - { name: mixed, route: "GET /mixed/{id}", identifier: { first: [token, api-key, ip] }, limit: 6, window: 10s }
  - { name: one, route: "GET /one/{rest*}", identifier: ip, limit: 1, window: 1s }
  - { name: strangers, route: GET /open, identifier: ip, unless: api-key, limit: 3, window: 20s }
`;

const METHODS = ['GET', 'GET', 'GET', 'POST', 'POST', 'PUT', 'DELETE', 'HEAD', 'OPTIONS'];
const PATHS = [
  '/login',
  '/login/',
  '/items',
  '/items/1',
  '/items/2',
  '/items/%31',
  '/items//3/../1',
  '/items;v=1/2',
  '/items/1/parts',
  '/items/health',
  '/mixed/1',
  '/mixed/2',
  '/one/a/b',
  '/one/a%20b',
  '/caf%C3%A9',
  '/a"b',
  '/a%2Fb',
  '/a%00b',
  '/else',
  '/open',
  '/open',
];
const STATUSES = [200, 200, 200, 201, 304, 401, 404, 500];

function pick<T>(list: readonly T[], random: Dice): T {
  return list[random(list.length)] as T;
}

/** Writes a request of one lane. Lanes have separate addresses and keys, so the requests of a client have one order. */
function requestOf(lane: number, random: Dice): string {
  const key = (): string =>
    random(12) === 0 ? `fbk_${lane}-new-${random(1e9)}` : `fbk_${lane}-${random(3)}`;
  const method = pick(METHODS, random);
  const address = [`198.51.100.${lane}`, `203.0.113.${lane}`, `2001:db8:${lane}::1`, `2001:db8:${lane}:1::1`];
  const headers = [`X-Forwarded-For: ${pick(address, random)}`];
  const shape = random(20);
  if (shape < 8) headers.push(`X-Api-Key: ${key()}`);
  else if (shape < 12) headers.push(`Authorization: Bearer ${key()}`);
  else if (shape === 12) headers.push(`X-Api-Key: fbk_${lane}-1`, `Authorization: Bearer fbk_${lane}-1`);
  else if (shape === 13) headers.push(`X-Api-Key: fbk_${lane}-1`, `Authorization: Bearer fbk_${lane}-2`);
  if (random(6) === 0) headers.push(`X-Token: ${lane}-${random(2)}`);
  if (random(10) === 0) headers.push('Cookie: session=1');
  const target = `${pick(PATHS, random)}?status=${pick(STATUSES, random)}`;
  return `${method} ${target} HTTP/1.1\r\nHost: a\r\n${headers.join('\r\n')}\r\nContent-Length: 0\r\n\r\n`;
}

export async function noVerdictDiffers(t: Test, requests: number): Promise<void> {
  const upstream = await startUpstream(t, (req, res) => {
    res.writeHead(Number(/status=(\d+)/.exec(req.url ?? '')?.[1] ?? 200), { 'content-length': 0 });
    res.end();
  });
  const clock = testClock(Date.UTC(2026, 10, 22, 8));
  const log = join(temporaryFolder(t), 'access.log');
  const { gateway, port } = await startTestGateway(t, {
    upstream,
    policies: POLICIES,
    clock: clock.now,
    wallClock: clock.now,
    env: { GATEWAY_ACCESS_LOG: log, ...BEHIND_PROXY },
  });

  const lanes = Array.from({ length: LANES }, (_, i) => ({
    lane: new Lane(port),
    random: dice(i + 1),
    i,
  }));
  t.teardown(() => {
    for (const { lane } of lanes) lane.close();
  });
  const step = dice(99);
  const seen = { denied: 0, requests: 0 };
  while (seen.requests < requests) {
    await Promise.all(
      lanes.map(async ({ lane, random, i }) => {
        for (let n = 0; n < PER_ROUND; n++) {
          const { head } = await lane.ask(requestOf(i, random));
          seen.requests++;
          if (head.includes('\r\nx-gateway-ratelimited: true')) seen.denied++;
        }
      }),
    );
    clock.advance(1 + step(400));
  }
  // A reply reaches its client before its line is written.
  await until(() => readFileSync(log, 'utf8').split('\n').length > seen.requests, 'the log has every line');
  for (const { lane } of lanes) lane.close();
  await gateway.close();

  const set = loadPolicies(POLICIES, 'policies.yaml');
  const open = (): LogFiles => new LogFiles([{ name: 'access.log', input: log }], null, new Map());
  let now = 0;
  const judge = new Judge(set, { clock: () => now, trust: { kind: 'none' }, salt: '' });
  const verdicts = new Map<string, number>();
  const different: string[] = [];
  await open().each((request, at) => {
    now = at;
    const judged = judge.judge(request);
    const verdict = judged.weighed.kind;
    if (verdict !== 'deny') judge.answered(judged, request);
    verdicts.set(verdict, (verdicts.get(verdict) ?? 0) + 1);
    if (verdict !== request.digests?.decision) different.push(`${verdict}: ${JSON.stringify(request)}`);
  });
  t.strictSame(different.slice(0, 3), []);
  t.equal(different.length, 0);
  t.equal(verdicts.get('deny'), seen.denied, 'the log has the denials that clients got');
  for (const kind of ['allow', 'deny', 'uncovered', 'malformed'])
    t.ok((verdicts.get(kind) ?? 0) > requests / 50, `${kind}: ${verdicts.get(kind)}`);

  const result = await replay({
    logs: open(),
    set,
    against: set,
    trust: { kind: 'none' },
    salt: '',
    withRoutes: false,
  });
  t.match(result, {
    lines: seen.requests,
    requests: seen.requests,
    unreadable: 0,
    denied: seen.denied,
    allowed: verdicts.get('allow'),
    comparison: { newlyDenied: 0, newlyAllowed: 0 },
  });
  t.ok(
    result.policies.every(
      ({ name, allowed, denied }) => name === 'change' || allowed + denied > requests / 1_000,
    ),
  );
}
