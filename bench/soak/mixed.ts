/** Traffic without limits, beside the limits: pages, uploads, downloads, event streams, tunnels, aborts, and garbage. */
import { request } from 'node:http';
import { connect } from 'node:net';
import type { Client } from '#bench/run/client.ts';
import { replyTo } from '#bench/run/upstream.ts';
import type { Tally } from './tally.ts';

const PER_SECOND = 20;
const UPLOAD_BYTES = 200_000;
const DOWNLOAD_BYTES = 1_000_000;
const EVENTS = 3;
const TUNNEL = Buffer.alloc(50_000, 't');
const TIMEOUT_MS = 10_000;
const GARBAGE = [
  '\x16\x03\x01\x02\0\r\n\r\n',
  'GET / HTTP/9.9\r\nHost: a\r\n\r\n',
  'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n',
  'GET / HTTP/1.1\r\nHost: a\r\nBad Header: 1\r\n\r\n',
];

export interface Mixed {
  readonly client: Client;
  readonly port: number;
  readonly tally: Tally;
}

/** @returns what is wrong with the reply, or null */
type Act = (mixed: Mixed) => Promise<string | null>;

function ask(method: string, path: string, isRight: (text: string) => boolean, bytes = 0): Act {
  return async ({ client }) => {
    const { status, text } = await client.send({ method, path, bytes });
    return status === 200 && isRight(text) ? null : `status ${status}, ${text.slice(0, 80)}`;
  };
}

function eventStream({ port }: Mixed): Promise<string | null> {
  return within(({ done, onEnd }) => {
    const req = request({ port, host: '127.0.0.1', path: '/bench/events' });
    onEnd(() => req.destroy());
    let text = '';
    req.on('response', (res) => {
      res.on('error', (error) => done(error.message));
      res.on('data', (chunk: Buffer) => {
        text += chunk.toString();
        if (text.includes(`data: event ${EVENTS - 1}\n`))
          done(res.statusCode === 200 ? null : `status ${res.statusCode}`);
      });
    });
    req.on('error', (error) => done(error.message));
    req.end();
  });
}

function tunnel({ port }: Mixed): Promise<string | null> {
  return within(({ done, onEnd }) => {
    const headers = { connection: 'Upgrade', upgrade: 'websocket' };
    const req = request({ port, host: '127.0.0.1', path: '/bench/echo', headers });
    onEnd(() => req.destroy());
    req.on('upgrade', (_res, socket, head) => {
      onEnd(() => socket.destroy());
      let received = head.length;
      socket.on('error', (error) => done(error.message));
      socket.on('data', (chunk: Buffer) => {
        received += chunk.length;
        if (received >= TUNNEL.length)
          done(received === TUNNEL.length ? null : `${received} bytes came back`);
      });
      socket.write(TUNNEL);
    });
    req.on('response', (res) => done(`status ${res.statusCode}`));
    req.on('error', (error) => done(error.message));
    req.end();
  });
}

function abort({ port }: Mixed): Promise<string | null> {
  return within(({ done, onEnd }) => {
    const req = request({ port, host: '127.0.0.1', path: '/bench/slow?ms=2000' });
    onEnd(() => req.destroy());
    req.on('error', () => done(null));
    req.on('response', (res) => done(`status ${res.statusCode}`));
    req.end();
    setTimeout(() => done(null), 50);
  });
}

/** Right is a 4xx or a closed connection. */
function garbage({ port }: Mixed): Promise<string | null> {
  return within(({ done, onEnd }) => {
    const socket = connect(port, '127.0.0.1');
    onEnd(() => socket.destroy());
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
    });
    socket.on('error', () => done(null));
    socket.on('close', () => done(text === '' || /^HTTP\/1\.1 4\d\d /.test(text) ? null : text.slice(0, 60)));
    socket.end(GARBAGE[Math.floor(Math.random() * GARBAGE.length)] ?? '');
  });
}

const UPLOADED = replyTo('POST', '/files/upload', UPLOAD_BYTES);
/** Per cent of this traffic. Garbage is then about 1 % of all requests, including those with limits. */
const SHARES: readonly (readonly [name: string, share: number, act: Act])[] = [
  ['page', 30, ask('GET', '/s/survey', () => true)],
  ['preflight', 10, ask('OPTIONS', '/api/v1/client/soak/responses', () => true)],
  ['upload', 15, ask('POST', '/files/upload', (text) => text === UPLOADED, UPLOAD_BYTES)],
  [
    'download',
    10,
    ask('GET', `/bench/download?bytes=${DOWNLOAD_BYTES}`, ({ length }) => length === DOWNLOAD_BYTES),
  ],
  ['event stream', 10, eventStream],
  ['tunnel', 10, tunnel],
  ['abort', 8, abort],
  ['garbage', 7, garbage],
];

/** @returns ends it, and waits for the last replies */
export function startMixed(mixed: Mixed): () => Promise<void> {
  const running = new Set<Promise<void>>();
  const timer = setInterval(() => {
    const [name, act] = choose();
    const one = act(mixed)
      .catch((error: Error) => error.message)
      .then((fault) => {
        mixed.tally.replied(name, null);
        if (fault !== null) mixed.tally.fault(`${name}: ${fault}`, new Date().toISOString());
      })
      .finally(() => running.delete(one));
    running.add(one);
  }, 1000 / PER_SECOND);
  return async () => {
    clearInterval(timer);
    await Promise.all(running);
  };
}

function choose(): readonly [string, Act] {
  let at = Math.random() * 100;
  for (const [name, share, act] of SHARES) {
    at -= share;
    if (at < 0) return [name, act];
  }
  throw new Error('the shares are less than 100 %');
}

interface Ending {
  /** @param fault null: everything was right */
  done(fault: string | null): void;
  onEnd(close: () => void): void;
}

/** Everything that an act opens is closed when it ends or takes too long. */
function within(act: (ending: Ending) => void): Promise<string | null> {
  return new Promise((resolve) => {
    const closes: (() => void)[] = [];
    const done = (fault: string | null): void => {
      clearTimeout(timer);
      resolve(fault);
      for (const close of closes.splice(0)) close();
    };
    const timer = setTimeout(() => done('no end in time'), TIMEOUT_MS);
    act({ done, onEnd: (close) => closes.push(close) });
  });
}
