/**
 * Traffic on routes without limits, in addition to that on routes with limits: pages, uploads, downloads, event
 * streams, tunnels, aborts, and garbage.
 */
import { randomInt } from 'node:crypto';
import { attackOf } from '#bench/abuse/attacks.ts';
import { inTurn, requestText } from '#bench/abuse/template.ts';
import type { Ask } from '#bench/run/client.ts';
import { replyTo } from '#bench/run/upstream.ts';
import { sendRaw } from '#test/support/raw.ts';
import type { Clients } from './limits.ts';
import type { SoakTally } from './tally.ts';

const PER_SECOND = 20;
const BYTES = 200_000;
const DOWNLOAD = 'd'.repeat(1_000_000);
const TUNNEL = 't'.repeat(50_000);
const TIMEOUT_MS = 10_000;

interface Mixed {
  readonly clients: Clients;
  readonly port: number;
  readonly tally: SoakTally;
}

/** Sends one request and checks the reply. @returns what is wrong; null if nothing is */
type Act = (mixed: Mixed) => Promise<string | null>;

function ask(asked: Ask, reply = replyTo(asked.method, asked.path, asked.bytes ?? 0)): Act {
  return async ({ clients }) => {
    const client = Math.random() < 0.5 && asked.isChunked !== true ? clients.plain : clients.mixed;
    const { status, text } = await client.send(asked);
    return status === 200 && text === reply ? null : `status ${status}, ${text.slice(0, 80)}`;
  };
}

interface Exchange {
  readonly send: () => string;
  /** The client goes on when this has arrived. */
  readonly until?: RegExp;
  /** The client sends this then, before it closes its half. */
  readonly more?: string;
  /** When the client leaves then. Without it, it waits for the end. */
  readonly leavesAfterMs?: number;
  readonly isRight: (received: string) => boolean;
}

/** Uses a connection for one exchange. */
function exchange({ send, until, more, leavesAfterMs, isRight }: Exchange): Act {
  return async ({ port }) => {
    const { socket, ...connection } = sendRaw(port, send());
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      socket.destroy();
    }, TIMEOUT_MS);
    socket.once('close', () => clearTimeout(timer));
    if (until !== undefined) await connection.until(until);
    if (more !== undefined) socket.end(more);
    if (leavesAfterMs !== undefined) setTimeout(() => socket.destroy(), leavesAfterMs);
    const received = await connection.ended();
    if (isLate) return 'no end in time';
    return isRight(received) ? null : `${received.length} bytes, ${received.slice(0, 60)}`;
  };
}

const request = (short: string) => () => requestText(short);
const nextGarbage = inTurn(attackOf('garbage').attack[0]?.raw ?? []);
const upload = { method: 'POST', path: '/files/upload', bytes: BYTES };
const download = { method: 'GET', path: `/bench/download?bytes=${DOWNLOAD.length}` };
const events: Exchange = {
  ...{ send: request('GET /bench/events'), until: /data: event 2\n/, leavesAfterMs: 0 },
  isRight: (received) => received.startsWith('HTTP/1.1 200 '),
};
const tunnel: Exchange = {
  send: request('GET /bench/echo\nConnection: Upgrade\nUpgrade: websocket'),
  ...{ until: /\r\n\r\n/, more: TUNNEL },
  isRight: (received) => /^HTTP\/1\.1 101 /.test(received) && received.endsWith(`\r\n\r\n${TUNNEL}`),
};
const abort: Exchange = {
  ...{ send: request('GET /bench/slow?ms=2000'), leavesAfterMs: 50 },
  isRight: (received) => received === '',
};
/** Bytes that are no valid request. The gateway must reply 4xx or close the connection. */
const garbage: Exchange = {
  ...{ send: () => nextGarbage().toString('latin1'), more: '' },
  isRight: (received) => received === '' || /^HTTP\/1\.1 4\d\d /.test(received),
};

/** The weights make garbage about 1 % of all requests, including those on routes with limits. */
const ACTS: readonly { readonly name: string; readonly weight: number; readonly act: Act }[] = [
  { name: 'page', weight: 30, act: ask({ method: 'GET', path: '/s/survey' }) },
  { name: 'preflight', weight: 10, act: ask({ method: 'OPTIONS', path: '/api/v1/client/soak/responses' }) },
  { name: 'upload', weight: 11, act: ask(upload) },
  { name: 'upload in chunks', weight: 4, act: ask({ ...upload, isChunked: true }) },
  { name: 'download', weight: 10, act: ask(download, DOWNLOAD) },
  { name: 'event stream', weight: 10, act: exchange(events) },
  { name: 'tunnel', weight: 10, act: exchange(tunnel) },
  { name: 'abort', weight: 8, act: exchange(abort) },
  { name: 'garbage', weight: 7, act: exchange(garbage) },
];
/** Each as often as it weighs. */
const WEIGHTED = ACTS.flatMap((one) => Array.from({ length: one.weight }, () => one));

/** Starts the traffic. @returns a function that stops it and waits for the last replies */
export function startMixed(mixed: Mixed): () => Promise<void> {
  const running = new Set<Promise<void>>();
  const run = async (): Promise<void> => {
    const one = WEIGHTED[randomInt(WEIGHTED.length)];
    if (one === undefined) return;
    const fault = await one.act(mixed).catch((error: Error) => error.message);
    mixed.tally.replied(one.name);
    if (fault !== null) mixed.tally.fault(`${one.name}: ${fault}`, new Date().toISOString());
  };
  const timer = setInterval(() => {
    const one = run().finally(() => running.delete(one));
    running.add(one);
  }, 1000 / PER_SECOND);
  return async () => {
    clearInterval(timer);
    await Promise.all(running);
  };
}
