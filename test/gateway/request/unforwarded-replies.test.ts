/**
 * Replies that cannot be forwarded, and requests without a reply in time, count as success and as failure: a client that
 * can provoke them would have no limit otherwise. They cost the most that a reply can report, unless nothing came.
 */
import t, { type Test } from 'tap';
import { send, startRawUpstream } from '#test/gateway/proxy/exchange.ts';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';
import { insideLongWindow } from '#test/support/window.ts';

const LIMIT = 3;
const TOKENS = 'limit: 100, window: 366d, cost: { replyHeader: X-Tokens, reserve: 1 }';
const POLICIES = policyFile(
  `name: failures, route: "POST /failures/{kind}", identifier: ip, limit: ${LIMIT}, window: 366d, count: failure`,
  `name: successes, route: "POST /successes/{kind}", identifier: ip, limit: ${LIMIT}, window: 366d, count: success`,
  `name: tokens, route: "POST /tokens/{kind}", identifier: ip, ${TOKENS}`,
);

/** Ten limits. */
const MOST = 1000;
const HEAD = 'HTTP/1.1 200 OK\r\nX-Tokens: 40\r\n';
const LONG = `X-Long: ${'x'.repeat(17_000)}\r\n`;

interface Kind {
  readonly bytes: string;
  /** How the connection ends. Default: it stays open. */
  readonly ending?: 'end' | 'reset';
  readonly status: 502 | 504;
}

const KINDS: Readonly<Record<string, Kind>> = {
  'too-large': { bytes: `${HEAD}${LONG}\r\n`, status: 502 },
  'too-large-without-end': { bytes: `${HEAD}${LONG}`, status: 502 },
  'too-late': { bytes: `HTTP/1.1 200 OK\r\n${LONG}X-Tokens: 40\r\n\r\n`, status: 502 },
  'too-late-without-end': { bytes: `HTTP/1.1 200 OK\r\n${LONG}`, status: 502 },
  'unreadable-report': { bytes: 'HTTP/1.1 200 OK\r\nX-Tokens\0: 40\r\n\r\n', status: 502 },
  malformed: { bytes: `${HEAD}X-A 1\r\n\r\n`, status: 502 },
  'two-lengths': { bytes: `${HEAD}Content-Length: 1\r\nContent-Length: 2\r\n\r\nx`, status: 502 },
  coded: { bytes: `${HEAD}Transfer-Encoding: gzip, chunked\r\n\r\n`, status: 502 },
  'no-http': { bytes: 'SSH-2.0-x\r\n', status: 502 },
  switched: { bytes: `${HEAD.replace('200', '101')}\r\n`, status: 502 },
  'ended-in-head': { bytes: HEAD, ending: 'end', status: 502 },
  'reset-in-head': { bytes: HEAD, ending: 'reset', status: 502 },
  'cut-in-the-field': { bytes: HEAD.slice(0, -3), ending: 'end', status: 502 },
  closed: { bytes: '', ending: 'end', status: 502 },
  'stalled-in-head': { bytes: HEAD, status: 504 },
  'stalled-before-the-field': { bytes: 'HTTP/1.1 200 OK\r\nX-A: 1\r\n', status: 504 },
  'longest-number': {
    bytes: `${HEAD.replace('40', '9'.repeat(16))}X-A: 1`,
    ending: 'end',
    status: 502,
  },
  silent: { bytes: '', status: 504 },
};

async function started(t: Test): Promise<number> {
  const upstream = await startRawUpstream(t, (socket, text) => {
    if (!text.endsWith('\r\n\r\n')) return;
    const kind = KINDS[[...text.matchAll(/ \/\w+\/(\S+) HTTP/g)].at(-1)?.[1] ?? ''];
    if (kind === undefined) {
      socket.write('HTTP/1.1 200 OK\r\nX-Tokens: 0\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    const finish = (): void => {
      if (kind.ending === 'end') socket.end();
      // Reset later, because a reset discards what has not been read.
      if (kind.ending === 'reset') setTimeout(() => socket.resetAndDestroy(), 100);
    };
    if (kind.bytes === '') finish();
    else socket.write(kind.bytes, 'latin1', finish);
  });
  const env = { GATEWAY_UPSTREAM_TIMEOUT_MS: '1000' };
  const { port } = await startTestGateway(t, { upstream, policies: POLICIES, env });
  return port;
}

t.test('count as success and as failure', async (t) => {
  await insideLongWindow();
  const port = await started(t);
  for (const counted of ['failures', 'successes'])
    for (const [i, [name, { status }]] of Object.entries(KINDS).entries()) {
      const options = { method: 'POST', localAddress: `127.0.1.${i + 1}`, headers: { 'content-length': 0 } };
      const replies = await Promise.all(
        Array.from({ length: LIMIT }, () => send(port, `/${counted}/${name}`, options)),
      );
      replies.push(await send(port, `/${counted}/${name}`, options));
      const expected = [...Array(LIMIT).fill(status), 429];
      t.strictSame(
        replies.map((reply) => reply.status),
        expected,
        `${counted}: ${name}`,
      );
    }
});

t.test('cost the most that a reply can report, or the reserve if nothing came', async (t) => {
  await insideLongWindow();
  const port = await started(t);
  for (const [i, [name, { status, bytes }]] of Object.entries(KINDS).entries()) {
    const options = { method: 'POST', localAddress: `127.0.1.${i + 1}`, headers: { 'content-length': 0 } };
    t.equal((await send(port, `/tokens/${name}`, options)).status, status, name);
    const cost = bytes === '' ? 1 : MOST;
    const { status: then, headers } = await send(port, '/tokens/good', options);
    t.equal(then, cost === MOST ? 429 : 200, name);
    t.match(headers.ratelimit, `"tokens";r=${Math.max(0, 100 - cost - 1)};`, name);
  }
});
