/**
 * Tests which identity a request is counted for, and which credential its reply may prove, with real requests to a
 * gateway.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { send } from '#test/gateway/proxy/exchange.ts';
import { testClock } from '#test/support/clock.ts';
import { BEHIND_PROXY, policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { onEachStore } from '#test/support/stores.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { keySetText, newSigner, sign } from '#test/support/tokens.ts';
import { insideLongWindow } from '#test/support/window.ts';

const ROW = 'name: keys, route: "GET /*", identifier: api-key, limit: 10, window: 366d';
const WIDE_ROW = ROW.replace('limit: 10', 'limit: 100');

/** Sends requests one after the other. @returns how many of them no limit denied */
async function reached(
  port: number,
  times: number,
  of: (i: number) => Record<string, string>,
  path = '/a',
): Promise<number> {
  let count = 0;
  for (let i = 0; i < times; i++) {
    const reply = await send(port, path, { headers: of(i) });
    if (reply.headers['x-gateway-ratelimited'] === undefined) count++;
  }
  return count;
}

t.test('only a successful reply is a proof', async (t) => {
  await insideLongWindow();
  const statuses = [301, 400, 401, 403, 404, 405, 409, 413, 415, 422, 429, 500];
  const upstream = await startUpstream(t, (req, res) => res.writeHead(Number(req.url?.slice(1))).end());
  const { port } = await startTestGateway(t, { upstream, policies: policyFile(ROW), env: BEHIND_PROXY });
  for (const [place, status] of statuses.entries()) {
    const client = { 'x-forwarded-for': `192.0.2.${place}` };
    const passed = await reached(
      port,
      15,
      (i) => ({ ...client, 'x-api-key': `invented-${status}-${i}` }),
      `/${status}`,
    );
    t.equal(passed, 10, `${status}: one limit for all invented keys`);
  }
});

t.test('a reply proves no key if the request has a second credential', async (t) => {
  await insideLongWindow();
  const beside: readonly Record<string, string>[] = [
    { cookie: 'session=real' },
    { authorization: 'Basic cmVhbDpyZWFs' },
    { authorization: 'Bearer something-else' },
  ];
  for (const headers of beside) {
    const { port } = await startTestGateway(t, { policies: policyFile(ROW) });
    const passed = await reached(port, 30, (i) => ({ ...headers, 'x-api-key': `invented-${i}` }));
    t.equal(passed, 10, JSON.stringify(headers));
  }
});

t.test('a reply proves no key if the request has another that its route does not count', async (t) => {
  await insideLongWindow();
  const upstream = await startUpstream(t, ({ headers, url }, res) => {
    const isReal =
      headers['x-token'] === 'real' || headers.cookie === 'other=1; sid=real' || url?.endsWith('real');
    res.writeHead(isReal ? 200 : 401).end();
  });
  const policies = `version: 1
identifiers:
  key: { source: [{ header: x-api-key }, { cookie: key }] }
  token: { source: [{ header: x-token }, { query: token }] }
  session: { source: [{ cookie: sid }] }
policies:
  - { name: keys, route: "GET /*", identifier: key, limit: 10, window: 366d }
  - { name: tokens, route: "GET /elsewhere", identifier: token, limit: 10, window: 366d }
`;
  const beside: readonly [string, Record<string, string>][] = [
    ['/a', { 'x-token': 'real' }],
    ['/a?token=real', {}],
    ['/a', { cookie: 'other=1; sid=real' }],
  ];
  for (const [path, headers] of beside) {
    const { port } = await startTestGateway(t, { upstream, policies });
    const { cookie } = headers;
    const sent = (key: string) =>
      cookie === undefined ? { ...headers, 'x-api-key': key } : { cookie: `${cookie}; key=${key}` };
    const passed = await reached(port, 36, (i) => sent(`invented-${i % 12}`), path);
    t.ok(passed <= 10, `${passed} beside ${path} ${JSON.stringify(headers)}`);
  }
});

t.test('a reply to OPTIONS neither proves nor withdraws anything', async (t) => {
  await insideLongWindow();
  const upstream = await startUpstream(t, ({ method, headers }, res) => {
    const isValid = String(headers['x-api-key']).startsWith('valid');
    if (method === 'OPTIONS') res.writeHead(isValid ? 401 : 200).end();
    else res.writeHead(isValid ? 200 : 403).end();
  });
  const policies = `version: 1
identifiers:
  key: { source: [{ header: x-api-key }] }
  id: { source: [{ path: id }] }
policies:
  - { name: keys, route: "* /keys", identifier: key, limit: 10, window: 366d }
  - { name: ids, route: "* /ids/{id}", identifier: id, limit: 10, window: 366d }
`;
  const { port } = await startTestGateway(t, { upstream, policies });
  const ask = async (method: string, path: string, key: string): Promise<boolean> => {
    const { headers } = await send(port, path, { method, headers: { 'x-api-key': key } });
    return headers['x-gateway-ratelimited'] === undefined;
  };
  t.ok(await ask('GET', '/keys', 'valid-1'));
  for (const place of ['/keys', '/ids']) {
    let reached = 0;
    for (let i = 0; i < 20; i++) {
      const path = place === '/ids' ? `/ids/invented-${i}` : place;
      for (const method of ['OPTIONS', ...Array<string>(3).fill('POST')])
        if (await ask(method, path, `invented-${i}`)) reached++;
    }
    t.ok(reached <= 10, `${reached} at ${place}`);
  }
  t.ok(await ask('OPTIONS', '/keys', 'valid-1'));
  t.ok(await ask('GET', '/keys', 'valid-1'), 'a 401 to OPTIONS withdraws no proof');
});

t.test('the same key as header and as bearer token is one credential, and is proven', async (t) => {
  await insideLongWindow();
  const { port } = await startTestGateway(t, { policies: policyFile(WIDE_ROW) });
  for (let i = 0; i < 180; i++) {
    const key = `fbk_${i % 60}`;
    const { status } = await send(port, '/a', {
      headers: { 'x-api-key': key, authorization: `Bearer ${key}` },
    });
    if (status !== 200) return t.fail(`request ${i} got ${status}`);
  }
  t.pass('sixty requests of proven keys exceed no limit');
});

t.test('a 401 withdraws the proof', async (t) => {
  await insideLongWindow();
  let isRevoked = false;
  const upstream = await startUpstream(t, (_req, res) => res.writeHead(isRevoked ? 401 : 200).end());
  const { port } = await startTestGateway(t, { upstream, policies: policyFile(WIDE_ROW) });
  const ask = async (key: string) => (await send(port, '/a', { headers: { 'x-api-key': key } })).status;
  const keys = Array.from({ length: 60 }, (_, i) => `fbk_${i}`);
  for (const key of keys) t.equal(await ask(key), 200);
  isRevoked = true;
  for (const key of keys) t.equal(await ask(key), 401, 'the first request after the revocation');
  const statuses: number[] = [];
  for (const key of keys) statuses.push(await ask(key));
  t.ok(statuses.includes(429), 'then the key is counted with its address');
});

t.test('a key in use stays proven, one unused for 30 days does not', async (t) => {
  const isValid = (key: unknown): boolean => String(key).startsWith('valid');
  const upstream = await startUpstream(t, ({ headers }, res) => {
    res.writeHead(isValid(headers['x-api-key']) ? 200 : 401).end();
  });
  const clock = testClock(Date.UTC(2026, 0, 1));
  const { port } = await startTestGateway(t, {
    upstream,
    policies: policyFile('name: keys, route: "GET /*", identifier: api-key, limit: 10, window: 1m'),
    clock: clock.now,
  });
  const ask = async (key: string) => (await send(port, '/a', { headers: { 'x-api-key': key } })).status;
  const days = 86_400_000;
  /** A key that is not proven is denied then, because its address has nothing left. */
  const flood = async (): Promise<void> => {
    for (let i = 0; i < 12; i++) await ask(`invented-${i}`);
  };
  for (const key of ['valid-busy', 'valid-resting']) t.equal(await ask(key), 200);
  clock.advance(30 * days - 60_000);
  await flood();
  t.equal(await ask('valid-busy'), 200, 'the last success was almost 30 days ago');
  clock.advance(60_000);
  await flood();
  t.equal(await ask('valid-resting'), 429, 'the last success was 30 days ago');
  clock.advance(29 * days);
  await flood();
  t.equal(await ask('valid-busy'), 200, 'a later success has proven it again');
  clock.advance(60_000);
  t.equal(await ask('valid-resting'), 200, 'the next window has room');
});

const TABLE = `version: 1
identifiers:
  ip: { source: client-address }
  session: { source: [{ cookie: sid }] }
  token: { source: [{ query: token }] }
  api-key: { source: [{ header: x-api-key }] }
policies:
  - { name: session, route: "GET /session", identifier: session, limit: 8, window: 366d }
  - { name: token, route: "GET /token", identifier: token, limit: 8, window: 366d }
  - { name: workspace, route: "GET /w/{id}/*", identifier: path.id, limit: 8, window: 366d }
  - { name: both, route: "GET /both/{id}", identifier: [api-key, path.id], limit: 8, window: 366d }
  - { name: keys, route: "GET /both/{id}", identifier: api-key, limit: 1000, window: 366d }
`;

t.test('identifies clients by cookie, query parameter, path, and several together', async (t) => {
  await insideLongWindow();
  const upstream = await startUpstream(t, (req, res) => {
    const isInvented = JSON.stringify([req.url, req.headers]).includes('invented');
    res.writeHead(isInvented ? 404 : 200).end();
  });
  await onEachStore(t, { upstream, policies: TABLE }, async (t, { port }) => {
    /** Counts how many of these requests are admitted, one after the other. */
    const passed = async (
      times: number,
      of: (i: number) => readonly [path: string, headers?: Record<string, string>],
    ) => {
      let count = 0;
      for (let i = 0; i < times; i++) {
        const [path, headers = {}] = of(i);
        if ((await send(port, path, { headers })).status !== 429) count++;
      }
      return count;
    };
    const both = (id: number | string, key: string) => [`/both/${id}`, { 'x-api-key': key }] as const;
    t.equal(await passed(10, () => ['/session', { cookie: 'a=b; sid=1' }]), 8, 'one cookie is limited');
    t.equal(await passed(3, (i) => ['/session', { cookie: `sid=s${i}; theme=dark` }]), 3, 'one limit each');
    t.equal(
      await passed(10, (i) => ['/session', { cookie: `sid=invented-${i}` }]),
      4,
      'invented cookies get the rest of the address’s limit',
    );
    t.equal(await passed(10, (i) => ['/session', { cookie: `theme=${i}` }]), 10, 'without a cookie');
    t.equal(await passed(10, (i) => [`/token?page=${i}&token=1`]), 8);
    t.equal(await passed(3, (i) => [`/token?token=t${i}`]), 3);
    t.equal(await passed(10, (i) => [`/token?token=invented-${i}`]), 4);
    t.equal(await passed(10, (i) => [`/w/one/${i}`]), 8);
    t.equal(await passed(5, (i) => [`/w/one;x=${i}/a`]), 0, 'another spelling is the same identity');
    t.equal(await passed(3, (i) => [`/w/w${i}/a`]), 3);
    t.equal(await passed(10, (i) => [`/w/invented-${i}/a`]), 4);
    t.equal(await passed(10, () => both(1, 'k')), 8);
    t.equal(await passed(10, (i) => both(i + 2, 'k')), 10, 'each pair of the proven key has its limit');
    t.equal(await passed(10, (i) => both('invented', `k${i}`)), 7);
    t.equal(await passed(10, () => ['/both/1']), 10, 'requests with one of the two are not counted');
  });
});

t.test('refuses two different values with a reason', async (t) => {
  const { port } = await startTestGateway(t, { policies: TABLE });
  const refused = async (path: string, headers: Record<string, string> = {}): Promise<string> => {
    const { status, body } = await send(port, path, { headers });
    t.equal(status, 400, path);
    return JSON.parse(body.toString()).message;
  };
  t.match(await refused('/session', { cookie: 'sid=1; sid=2' }), 'two different values of session; send one');
  t.match(await refused('/token?token=1&token=2'), 'two different values of token; send one');
  t.match(await refused('/session', { cookie: 'sid=1', connection: 'cookie' }), 'carries a credential');
});

t.test('a signed token counts by its claim; without a valid one the next row applies', async (t) => {
  await insideLongWindow();
  const folder = temporaryFolder(t);
  const signer = await newSigner('ES256', 'key');
  const forger = await newSigner('ES256', 'key');
  writeFileSync(join(folder, 'keys.json'), keySetText(signer));
  const file = join(folder, 'policies.yaml');
  writeFileSync(
    file,
    `version: 1
identifiers:
  ip: { source: client-address }
  user: { source: [{ jwt: { bearer: true, claim: sub, jwks: keys.json } }, { jwt: { cookie: jwt, claim: sub, jwks: keys.json } }] }
policies:
  - { name: user, route: "GET /*", identifier: user, limit: 3, window: 366d }
  - { name: both, route: "GET /w/{id}", identifier: [user, path.id], limit: 2, window: 366d }
  - { name: address, route: "GET /*", identifier: ip, limit: 30, window: 366d }
`,
  );
  await onEachStore(t, { env: { GATEWAY_POLICIES: file } }, async (t, { port }) => {
    const ask = async (headers: Record<string, string>, path = '/a') =>
      (await send(port, path, { headers })).status;
    const bearer = async (sub: string, by = signer, more = {}) => ({
      authorization: `Bearer ${await sign(by, { sub, ...more })}`,
    });
    const ada = await bearer('ada');
    for (const status of [200, 200]) t.equal(await ask(ada), status);
    t.equal(
      await ask({
        cookie: (await bearer('ada', signer, { jti: '2' })).authorization.replace('Bearer ', 'jwt='),
      }),
      200,
    );
    t.equal(await ask(await bearer('ada', signer, { jti: '3' })), 429, 'another token, the same client');
    t.equal(await ask({ ...ada, cookie: `jwt=${await sign(signer, { sub: 'bob' })}` }), 400, 'two tokens');
    const eve = await bearer('eve');
    for (const status of [200, 200, 429]) t.equal(await ask(eve, '/w/1'), status);
    t.equal(await ask(eve, '/w/2'), 200);
    // Six requests were admitted so far, which count for their address too.
    let admitted = 0;
    for (let i = 0; i < 40; i++) if ((await ask(await bearer(`x${i}`, forger))) === 200) admitted++;
    t.equal(admitted, 24, 'without a valid token the address is counted');
  });
});
