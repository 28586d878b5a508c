/** Each request has one line in the access log and one count in the metrics, and both say the same about it. */
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { policyFile, startTestGateway, startUpstream, type TestGateway } from '#test/support/gateway.ts';
import { jsonLines } from '#test/support/json.ts';
import { sendRaw } from '#test/support/raw.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const POLICIES = policyFile(
  'name: one, route: "POST /one", identifier: ip, limit: 1, window: 366d',
  'name: form, route: "POST /form", identifier: { body: email }, limit: 1, window: 366d',
  'name: keys, route: "GET /keys", identifier: api-key, limit: 3, window: 366d',
  'name: all, route: "GET /keys", identifier: ip, limit: 100, window: 366d',
);
const OUTCOMES = ['uncovered', 'allowed', 'denied', 'malformed', 'undecided'] as const;
const DECISIONS: Readonly<Record<string, string>> = { allow: 'allowed', deny: 'denied' };

type Line = Record<string, unknown>;

interface Counted extends TestGateway {
  /** Closes the gateway, and checks that its metrics agree with the lines, which it resolves with. */
  agreed(t: Test): Promise<Line[]>;
}

/** It replies before the body has arrived, as many applications do when they refuse it. */
const OK: RequestListener = (_req, res) => void res.end('ok');

async function start(t: Test, application: RequestListener = OK): Promise<Counted> {
  const file = join(temporaryFolder(t), 'access.log');
  const upstream = await startUpstream(t, application);
  const gateway = await startTestGateway(t, {
    upstream,
    policies: POLICIES,
    env: { GATEWAY_ACCESS_LOG: file },
  });
  return {
    ...gateway,
    async agreed(t) {
      await gateway.gateway.close();
      const lines: Line[] = jsonLines(file);
      const outcomes = lines.map(({ decision }) => DECISIONS[String(decision)] ?? decision);
      for (const outcome of OUTCOMES)
        t.equal(
          outcomes.filter((one) => one === outcome).length,
          gateway.sample('floodgate_requests_total', { outcome }),
          outcome,
        );
      return lines;
    },
  };
}

const BODY = 'a'.repeat(50_000);
const upload = (path: string, more: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n${more}\r\n${BODY}`;

for (const [who, path] of [
  ['the gateway has refused', '/one'],
  ['the application has answered', '/open'],
] as const)
  t.test(`an upload that ${who}, and whose client then leaves, is one request`, async (t) => {
    const gateway = await start(t);
    await (await fetch(`${gateway.origin}/one`, { method: 'POST' })).text();
    const client = sendRaw(gateway.port, upload(path, ''));
    await client.until(/HTTP\/1\.1 (?:429|200).*\r\n\r\n/s);
    client.socket.end();
    t.equal((await client.ended()).match(/HTTP\/1\.1 /g)?.length, 1, 'one reply');
    t.equal((await gateway.agreed(t)).length, 2);
  });

t.test(
  'bytes that are no chunk, behind a reply that did not wait for the body, get no second reply',
  async (t) => {
    const gateway = await start(t);
    const client = sendRaw(
      gateway.port,
      'POST /open HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n',
    );
    await client.until(/200 OK.*ok/s);
    client.socket.write('no chunk\r\n');
    t.equal((await client.ended()).match(/HTTP\/1\.1 /g)?.length, 1);
    t.equal((await gateway.agreed(t)).length, 1);
  },
);

t.test('a request that ends before its decision is undecided, not uncovered', async (t) => {
  const gateway = await start(t);
  const form = 'Content-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n';
  await sendRaw(gateway.port, `POST /form HTTP/1.1\r\nHost: a\r\n${form}\r\nno chunk\r\n`).ended();
  t.match(await gateway.agreed(t), [
    { path: '/form', status: 400, decision: 'undecided', policies: [], uncounted: ['form'], policy: null },
  ]);
});

t.test('OPTIONS * is a request without a policy', async (t) => {
  const gateway = await start(t);
  await sendRaw(gateway.port, 'OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n').ended();
  t.match(await gateway.agreed(t), [{ path: '*', status: 204, decision: 'uncovered' }]);
});

t.test('a whole reply is not cut, also if the connection closes after it', async (t) => {
  const gateway = await start(t);
  for (const request of [
    'GET / HTTP/1.1\r\n',
    'TRACE / HTTP/1.1\r\nHost: a\r\n',
    'POST /one HTTP/1.0\r\nTransfer-Encoding: chunked\r\n',
    'HEAD /%00 HTTP/1.1\r\nHost: a\r\nConnection: TE\r\n',
  ])
    await sendRaw(gateway.port, `${request}\r\n`).ended();
  const lines = await gateway.agreed(t);
  t.strictSame(
    lines.map(({ method, status, cut }) => [method, status, cut]),
    [
      ['GET', 400, false],
      ['TRACE', 405, false],
      ['POST', 400, false],
      ['HEAD', 400, false],
    ],
  );
});

t.test('a line names the policies that counted the request, and those that did not', async (t) => {
  const gateway = await start(t);
  const ask = async (headers: Record<string, string>): Promise<void> => {
    await (await fetch(`${gateway.origin}/keys`, { headers })).text();
  };
  for (let i = 0; i < 5; i++) await ask({});
  for (let i = 0; i < 4; i++) await ask({ 'x-api-key': 'a' });
  const lines = await gateway.agreed(t);
  const named = (field: string, policy: string): number =>
    lines.filter((line) => (line[field] as string[]).includes(policy)).length;
  const counted = (policy: string): number =>
    ['allowed', 'denied'].reduce(
      (sum, decision) => sum + gateway.sample('floodgate_policy_decisions_total', { policy, decision }),
      0,
    );
  t.equal(named('policies', 'keys'), 4);
  t.equal(named('policies', 'keys'), counted('keys'));
  t.equal(named('uncounted', 'keys'), 5, 'a request without a key is not counted by it');
  t.equal(named('policies', 'all'), 9, 'a denied request was asked about too');
  t.equal(named('uncounted', 'all'), 0);
});

t.test('replies of the application, and missing ones, are counted by the class of the status', async (t) => {
  const gateway = await start(t, (req, res) => {
    const status = Number(req.url?.slice(1));
    if (status > 0) res.writeHead(status).end();
    else if (req.url === '/one') res.end();
    else req.socket.destroy();
  });
  for (const path of ['/200', '/304', '/404', '/410', '/503', '/cut'])
    await (await fetch(gateway.origin + path)).text();
  for (let i = 0; i < 3; i++) await (await fetch(`${gateway.origin}/one`, { method: 'POST' })).text();
  const admitted = (await gateway.agreed(t)).filter(({ decision }) => decision !== 'deny');
  const replied = (status: string): number => gateway.sample('floodgate_replies_total', { status });
  const logged = Map.groupBy(admitted, ({ status }) => `${String(status)[0]}xx`);
  for (const status of ['2xx', '3xx', '4xx']) t.equal(replied(status), logged.get(status)?.length, status);
  t.equal(replied('5xx'), 1);
  t.equal(replied('none'), 1, 'the gateway answered 502');
  t.equal(logged.get('5xx')?.length, 2);
  t.equal(replied('1xx') + replied('bound'), 0);
});
