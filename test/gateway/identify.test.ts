/** Whom a request is counted for, and which credential its answer may prove: on real requests to a whole gateway. */
import t from 'tap';
import { policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { windowWithRoom } from '#test/support/spend.ts';
import { send } from './proxy/exchange.ts';

const HOUR_MS = 3_600_000;
const ROW = 'name: keys, route: "GET /*", identifier: api-key, limit: 10, window: 1h';
const WIDE_ROW = ROW.replace('limit: 10', 'limit: 100');

t.test('an answer that is not a success proves nothing', async (t) => {
  await windowWithRoom(HOUR_MS, 30_000);
  const statuses = [301, 400, 401, 403, 404, 405, 409, 413, 415, 422, 429, 500];
  for (const status of statuses) {
    const upstream = await startUpstream(t, (_req, res) => res.writeHead(status).end());
    const { port } = await startTestGateway(t, { upstream: upstream.origin, policies: policyFile(ROW) });
    let reached = 0;
    for (let i = 0; i < 30; i++) {
      const { headers } = await send(port, '/a', { headers: { 'x-api-key': `invented-${i}` } });
      if (headers['x-gateway-ratelimited'] === undefined) reached++;
    }
    t.equal(reached, 8, `${status}: the limit less what is kept for those with a history`);
  }
});

t.test('a credential beside another one is not proven by the answer', async (t) => {
  await windowWithRoom(HOUR_MS, 30_000);
  const upstream = await startUpstream(t);
  const beside: readonly Record<string, string>[] = [
    { cookie: 'session=real' },
    { authorization: 'Basic cmVhbDpyZWFs' },
    { authorization: 'Bearer something-else' },
  ];
  for (const headers of beside) {
    const { port } = await startTestGateway(t, { upstream: upstream.origin, policies: policyFile(ROW) });
    let reached = 0;
    for (let i = 0; i < 30; i++) {
      const reply = await send(port, '/a', { headers: { ...headers, 'x-api-key': `invented-${i}` } });
      if (reply.status === 200) reached++;
    }
    t.equal(reached, 8, JSON.stringify(headers));
  }
});

t.test('the same key as header and as bearer token is one credential, and is proven', async (t) => {
  await windowWithRoom(HOUR_MS, 30_000);
  const upstream = await startUpstream(t);
  const { port } = await startTestGateway(t, { upstream: upstream.origin, policies: policyFile(WIDE_ROW) });
  for (let i = 0; i < 180; i++) {
    const key = `fbk_${i % 60}`;
    const { status } = await send(port, '/a', {
      headers: { 'x-api-key': key, authorization: `Bearer ${key}` },
    });
    if (status !== 200) return t.fail(`request ${i} got ${status}`);
  }
  t.pass('sixty keys that work spend more than one limit');
});

t.test('a 401 withdraws the proof', async (t) => {
  await windowWithRoom(HOUR_MS, 30_000);
  let isRevoked = false;
  const upstream = await startUpstream(t, (_req, res) => res.writeHead(isRevoked ? 401 : 200).end());
  const { port } = await startTestGateway(t, { upstream: upstream.origin, policies: policyFile(WIDE_ROW) });
  const ask = async (key: string) => (await send(port, '/a', { headers: { 'x-api-key': key } })).status;
  const keys = Array.from({ length: 60 }, (_, i) => `fbk_${i}`);
  for (const key of keys) t.equal(await ask(key), 200);
  isRevoked = true;
  for (const key of keys) t.equal(await ask(key), 401, 'the first one after the revocation');
  const statuses: number[] = [];
  for (const key of keys) statuses.push(await ask(key));
  t.ok(statuses.includes(429), 'from then on their address pays for them');
});
