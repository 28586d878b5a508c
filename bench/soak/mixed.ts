/** Traffic without limits, beside the limits: pages, uploads, downloads, event streams, tunnels, aborts, and garbage. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { GARBAGE } from '#bench/abuse/attacks/connections.ts';
import type { Ask } from '#bench/run/client.ts';
import { drawn } from '#bench/run/statistics.ts';
import { replyTo } from '#bench/run/upstream.ts';
import type { Clients, SoakTally } from './limits.ts';

const PER_SECOND = 20;
const UPLOAD_BYTES = 200_000;
const DOWNLOAD_BYTES = 1_000_000;
const TUNNEL = Buffer.alloc(50_000, 't');
const ABORT_MS = 50;
const TIMEOUT_MS = 10_000;

interface Mixed {
  readonly clients: Clients;
  readonly port: number;
  readonly tally: SoakTally;
}

/** @returns what is wrong, or null */
type Act = (mixed: Mixed) => Promise<string | null>;

function ask(method: string, path: string, isRight: (text: string) => boolean, body: Partial<Ask> = {}): Act {
  return async ({ clients }) => {
    const client = Math.random() < 0.5 && body.framing === undefined ? clients.plain : clients.mixed;
    const { status, text } = await client.send({ method, path, ...body });
    return status === 200 && isRight(text) ? null : `status ${status}, ${text.slice(0, 80)}`;
  };
}

async function eventStream({ port }: Mixed): Promise<string | null> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const { body, status } = await fetch(`http://127.0.0.1:${port}/bench/events`, { signal });
  let received = '';
  for await (const chunk of body ?? []) {
    received += Buffer.from(chunk).toString();
    // Leaving the loop closes the stream.
    if (received.includes('data: event 2\n')) return status === 200 ? null : `status ${status}`;
  }
  return `status ${status}, ended after ${received.length} bytes: ${received.slice(0, 80)}`;
}

async function tunnel({ port, tally }: Mixed): Promise<string | null> {
  tally.ways.replied('upgrade');
  const socket = connect(port, '127.0.0.1');
  const timer = setTimeout(() => socket.destroy(), TIMEOUT_MS);
  socket.write('GET /bench/echo HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  let received = '';
  let isOpen = false;
  for await (const chunk of socket) {
    received += chunk.toString('latin1');
    if (!isOpen && received.includes('\r\n\r\n')) {
      if (!received.startsWith('HTTP/1.1 101 ')) break;
      isOpen = true;
      socket.end(TUNNEL);
    }
  }
  clearTimeout(timer);
  return received.endsWith(`\r\n\r\n${TUNNEL}`) ? null : `${received.length} bytes, ${received.slice(0, 60)}`;
}

async function abort({ port }: Mixed): Promise<string | null> {
  const signal = AbortSignal.timeout(ABORT_MS);
  const reply = fetch(`http://127.0.0.1:${port}/bench/slow?ms=2000`, { signal });
  return reply.then(
    ({ status }) => `status ${status}`,
    () => null,
  );
}

/** A 4xx or a closed connection is right. */
async function garbage({ port, tally }: Mixed): Promise<string | null> {
  tally.ways.replied('malformed');
  const socket = connect(port, '127.0.0.1');
  const timer = setTimeout(() => socket.destroy(new Error('no end in time')), TIMEOUT_MS);
  await once(socket, 'connect');
  socket.end(GARBAGE[Math.floor(Math.random() * GARBAGE.length)] ?? '');
  const reply = await text(socket).catch((error: NodeJS.ErrnoException) =>
    error.code === 'ECONNRESET' ? '' : error.message,
  );
  clearTimeout(timer);
  return reply === '' || /^HTTP\/1\.1 4\d\d /.test(reply) ? null : reply.slice(0, 60);
}

const UPLOADED = replyTo('POST', '/files/upload', UPLOAD_BYTES);
const DOWNLOAD = `/bench/download?bytes=${DOWNLOAD_BYTES}`;
const upload = (how: Partial<Ask>): Act =>
  ask('POST', '/files/upload', (text) => text === UPLOADED, { bytes: UPLOAD_BYTES, ...how });
/** Garbage is about 1 % of all requests, including those with limits. */
const ACTS: readonly { readonly name: string; readonly weight: number; readonly act: Act }[] = [
  { name: 'page', weight: 30, act: ask('GET', '/s/survey', () => true) },
  { name: 'preflight', weight: 10, act: ask('OPTIONS', '/api/v1/client/soak/responses', () => true) },
  { name: 'upload', weight: 7, act: upload({}) },
  { name: 'upload in chunks', weight: 4, act: upload({ framing: 'chunked' }) },
  { name: 'upload after 100 Continue', weight: 4, act: upload({ framing: 'expect' }) },
  { name: 'download', weight: 10, act: ask('GET', DOWNLOAD, ({ length }) => length === DOWNLOAD_BYTES) },
  { name: 'event stream', weight: 10, act: eventStream },
  { name: 'tunnel', weight: 10, act: tunnel },
  { name: 'abort', weight: 8, act: abort },
  { name: 'garbage', weight: 7, act: garbage },
];

/** @returns ends it, and waits for the last replies */
export function startMixed(mixed: Mixed): () => Promise<void> {
  const running = new Set<Promise<void>>();
  const run = async (): Promise<void> => {
    const { name, act } = drawn(ACTS, Math.random());
    const fault = await act(mixed).catch((error: Error) => error.message);
    mixed.tally.replied(name);
    if (fault !== null) mixed.tally.fault(`${name}: ${fault}`, new Date().toISOString());
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
