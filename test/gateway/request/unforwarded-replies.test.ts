/**
 * Replies that cannot be forwarded, and requests without a reply in time, count as success and as failure: a client that
 * can provoke them would have no limit otherwise. They cost the most that a reply can report, unless nothing came.
 */
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { send, startRawUpstream } from '#test/gateway/proxy/exchange.ts';
import { casesUnder } from '#test/support/arrow-cases.ts';
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

interface Kind {
  readonly bytes: string;
  readonly ending: string;
  readonly status: number;
}

const PAGE = join(import.meta.dirname, 'unforwarded-replies.md');
const KINDS: Readonly<Record<string, Kind>> = Object.fromEntries(
  casesUnder(PAGE, 'Kinds').map(([name = '', ending = '', status, text = '']) => {
    const bytes = text.replaceAll('LONG', `X-Long: ${'x'.repeat(17_000)}`);
    return [name, { bytes, ending, status: Number(status) }];
  }),
);

async function started(t: Test): Promise<number> {
  const upstream = await startRawUpstream(t, (socket, text) => {
    if (!text.endsWith('\r\n\r\n')) return;
    const kind = KINDS[[...text.matchAll(/ \/\w+\/(\S+) HTTP/g)].at(-1)?.[1] ?? ''];
    if (kind === undefined) {
      socket.write('HTTP/1.1 200 OK\r\nX-Tokens: 0\r\nContent-Length: 0\r\n\r\n');
      return;
    }
    const finish = (): void => {
      if (kind.ending === 'ends') socket.end();
      // Reset later, because a reset discards what has not been read.
      if (kind.ending === 'is reset') setTimeout(() => socket.resetAndDestroy(), 100);
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
