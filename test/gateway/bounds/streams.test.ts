/** One client has hundreds of long or unread replies. Other clients get theirs. */
import t from 'tap';
import { startBareServer } from '#test/gateway/proxy/bare-server.ts';
import { startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { until } from '#test/support/until.ts';
import { connectMany, sendFrom } from './from.ts';

const HOSTILE = '127.0.0.9';
const VICTIM = '127.0.0.1';
const GET = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;
const MB = Buffer.alloc(1024 * 1024, 'x');

/** Longer than a test takes on a busy machine. */
const env = { GATEWAY_UPSTREAM_TIMEOUT_MS: '20000' };

t.test('256 event streams of one client leave the upstream to others', async (t) => {
  const upstream = await startUpstream(t, (req, res) => {
    if (req.url === '/ok') res.end('ok');
    else {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.write('data: 1\n\n');
    }
  });
  const { port, sample } = await startTestGateway(t, { upstream, env });
  const events = connectMany(t, { address: HOSTILE, port, count: 260, text: GET('/events') });
  await until(() => events.sockets.every((_, i) => events.received(i) !== ''), 'all are answered');
  for (let i = 0; i < 5; i++) t.equal((await sendFrom(VICTIM, port, '/ok')).status, 200);
  t.equal((await sendFrom(HOSTILE, port, '/ok')).status, 200, 'requests have other bounds than streams');
  const statuses = events.sockets.map((_, i) => Number(/^HTTP\/1\.1 (\d+)/.exec(events.received(i))?.[1]));
  t.equal(statuses.filter((status) => status === 200).length, 64);
  t.equal(statuses.filter((status) => status === 429).length, 196);
  const refused = events.received(statuses.indexOf(429));
  t.match(refused, /\r\nRetry-After: \d+\r\n/);
  t.notMatch(refused, /x-gateway-ratelimited: true/, 'no policy denied it');
  t.match(refused, /"code":"gateway_client_busy"/);
  t.match(refused, /"details":\{"bound":"streams","scope":"client"\}/);
  t.equal(sample('floodgate_held', { bound: 'streams' }), 64);
  t.equal(sample('floodgate_bound_refusals_total', { bound: 'streams', scope: 'client' }), 196);
  events.leave();
  await until(() => sample('floodgate_held', { bound: 'streams' }) === 0, 'all is given back');
  await until(() => sample('floodgate_held', { bound: 'upstream_connections' }) === 0, 'the connections too');
});

t.test('256 downloads of one client that are not read leave the upstream to others', async (t) => {
  const upstream = await startUpstream(t, (req, res) => {
    if (req.url === '/ok') res.end('ok');
    else for (let i = 0; i < 16; i++) res.write(MB);
  });
  const { port, sample } = await startTestGateway(t, { upstream, env });
  connectMany(t, { address: HOSTILE, port, count: 260, text: GET('/big'), isReading: false });
  await until(() => sample('floodgate_held', { bound: 'upstream_connections' }) === 64, 'it holds its share');
  for (let i = 0; i < 5; i++) t.equal((await sendFrom(VICTIM, port, '/ok')).status, 200);
});

t.test('when connections run out, an unread reply gives its connection to a waiting request', async (t) => {
  const upstream = await startUpstream(t, (req, res) => {
    if (req.url === '/ok') res.end('ok');
    else for (let i = 0; i < 16; i++) res.write(MB);
  });
  const { port, bounds } = await startBareServer(t, {
    origin: upstream.origin,
    bounds: { upstream_connections: { total: 4, perClient: 4 } },
    // Only the pressure may end them.
    unreadTimeoutMs: 3_600_000,
    timeoutMs: 3_600_000,
  });
  connectMany(t, { address: HOSTILE, port, count: 4, text: GET('/big'), isReading: false });
  await until(() => bounds.upstream_connections.held === 4, 'all connections are held');
  t.equal((await sendFrom(VICTIM, port, '/ok')).status, 200);
});

t.test('a long reply counts as a stream, and is not cut', async (t) => {
  let finish = (): void => undefined;
  const upstream = await startUpstream(t, (req, res) => {
    if (req.url === '/ok') res.end('ok');
    else {
      res.write('begun, ');
      finish = () => void res.end('done');
    }
  });
  const { port, bounds, clients } = await startBareServer(t, {
    origin: upstream.origin,
    bounds: { upstream_connections: { total: 1, perClient: 1 }, streams: { total: 1, perClient: 1 } },
    streamAfterMs: 200,
    checkMs: 50,
  });
  const long = connectMany(t, { address: HOSTILE, port, count: 1, text: GET('/long') });
  await until(() => long.received(0).includes('begun'), 'the reply has begun');
  t.equal((await sendFrom(VICTIM, port, '/ok')).status, 200, 'a request gets the only connection');
  t.equal(bounds.streams.held, 1);
  finish();
  await until(() => long.received(0).includes('done'), 'the rest arrives');
  await until(() => bounds.streams.held === 0, 'given back');
  t.equal((await sendFrom(VICTIM, port, '/ok')).status, 200);
  long.leave();
  await until(() => clients.size === 0, 'nobody holds anything');
  t.equal(bounds.upstream_connections.held, 0);
});

t.test('unread replies are counted, and cut beyond their maximum', async (t) => {
  const upstream = await startUpstream(t, (_req, res) => {
    for (let i = 0; i < 16; i++) res.write(MB);
  });
  const { port, bounds, warnings, clients } = await startBareServer(t, {
    origin: upstream.origin,
    bounds: { unread_replies: { perClient: 3 } },
    checkMs: 50,
  });
  const unread = connectMany(t, { address: HOSTILE, port, count: 10, text: GET('/big'), isReading: false });
  await until(() => bounds.unread_replies.refusals.client === 7, 'those beyond the share');
  t.equal(bounds.unread_replies.held, 3);
  t.equal(warnings.length, 1, 'the log has one warning a minute');
  t.match(warnings[0], { bound: 'unread_replies', limit: 3, setting: 'GATEWAY_CLIENT_SHARE' });
  unread.leave();
  await until(() => clients.size === 0, 'given back');
  t.equal(bounds.unread_replies.held, 0);
  t.equal(bounds.upstream_connections.held, 0);
});
