/**
 * Traffic on routes without limits, in addition to that on routes with limits: pages, uploads, downloads, event
 * streams, tunnels, aborts, and garbage.
 */
import { attackOf } from '#bench/abuse/attacks.ts';
import { inTurn } from '#bench/abuse/template.ts';
import type { Ask } from '#bench/run/client.ts';
import { drawn } from '#bench/run/statistics.ts';
import { replyTo } from '#bench/run/upstream.ts';
import { type RawConnection, sendRaw } from '#test/support/raw.ts';
import type { Clients, SoakTally } from './limits.ts';

const PER_SECOND = 20;
const UPLOAD_BYTES = 200_000;
const DOWNLOAD_BYTES = 1_000_000;
const TUNNEL = 't'.repeat(50_000);
const ABORT_MS = 50;
const TIMEOUT_MS = 10_000;

interface Mixed {
  readonly clients: Clients;
  readonly port: number;
  readonly tally: SoakTally;
}

/** Sends one request and checks the reply. @returns what is wrong; null if nothing is */
type Act = (mixed: Mixed) => Promise<string | null>;

function ask(method: string, path: string, isRight: (text: string) => boolean, body: Partial<Ask> = {}): Act {
  return async ({ clients }) => {
    const client = Math.random() < 0.5 && body.isChunked !== true ? clients.plain : clients.mixed;
    const { status, text } = await client.send({ method, path, ...body });
    return status === 200 && isRight(text) ? null : `status ${status}, ${text.slice(0, 80)}`;
  };
}

async function eventStream({ port }: Mixed): Promise<string | null> {
  const { socket, until } = open(port, 'GET /bench/events HTTP/1.1\r\nHost: a\r\n\r\n');
  const received = await until(/data: event 2\n/);
  socket.destroy();
  return received.startsWith('HTTP/1.1 200 ') ? null : received.slice(0, 60);
}

async function tunnel({ port }: Mixed): Promise<string | null> {
  const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket';
  const { socket, until, ended } = open(port, `GET /bench/echo HTTP/1.1\r\nHost: a\r\n${upgrade}\r\n\r\n`);
  const head = await until(/\r\n\r\n/);
  socket.end(TUNNEL);
  const received = await ended();
  const isRight = head.startsWith('HTTP/1.1 101 ') && received.endsWith(`\r\n\r\n${TUNNEL}`);
  return isRight ? null : `${received.length} bytes, ${received.slice(0, 60)}`;
}

async function abort({ port }: Mixed): Promise<string | null> {
  const signal = AbortSignal.timeout(ABORT_MS);
  const reply = fetch(`http://127.0.0.1:${port}/bench/slow?ms=2000`, { signal });
  return reply.then(
    ({ status }) => `status ${status}`,
    () => null,
  );
}

const nextGarbage = inTurn(attackOf('garbage').attack[0]?.raw ?? []);

/** Sends bytes that are no valid request. The gateway must reply 4xx or close the connection. */
async function garbage({ port }: Mixed): Promise<string | null> {
  const began = performance.now();
  const { socket, ended } = open(port, nextGarbage().toString('latin1'));
  socket.end();
  const reply = await ended();
  if (performance.now() - began > TIMEOUT_MS) return 'no end in time';
  return reply === '' || /^HTTP\/1\.1 4\d\d /.test(reply) ? null : reply.slice(0, 60);
}

/** Opens a connection, and closes it at the latest after the time limit. */
function open(port: number, text: string): RawConnection {
  const connection = sendRaw(port, text);
  const timer = setTimeout(() => connection.socket.destroy(), TIMEOUT_MS);
  connection.socket.once('close', () => clearTimeout(timer));
  return connection;
}

const UPLOADED = replyTo('POST', '/files/upload', UPLOAD_BYTES);
const DOWNLOAD = `/bench/download?bytes=${DOWNLOAD_BYTES}`;
const upload = (how: Partial<Ask>): Act =>
  ask('POST', '/files/upload', (text) => text === UPLOADED, { bytes: UPLOAD_BYTES, ...how });
/** The weights make garbage about 1 % of all requests, including those on routes with limits. */
const ACTS: readonly { readonly name: string; readonly weight: number; readonly act: Act }[] = [
  { name: 'page', weight: 30, act: ask('GET', '/s/survey', () => true) },
  { name: 'preflight', weight: 10, act: ask('OPTIONS', '/api/v1/client/soak/responses', () => true) },
  { name: 'upload', weight: 11, act: upload({}) },
  { name: 'upload in chunks', weight: 4, act: upload({ isChunked: true }) },
  { name: 'download', weight: 10, act: ask('GET', DOWNLOAD, ({ length }) => length === DOWNLOAD_BYTES) },
  { name: 'event stream', weight: 10, act: eventStream },
  { name: 'tunnel', weight: 10, act: tunnel },
  { name: 'abort', weight: 8, act: abort },
  { name: 'garbage', weight: 7, act: garbage },
];

/** Starts the traffic. @returns a function that stops it and waits for the last replies */
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
