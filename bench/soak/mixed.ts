/** What no limit is about, beside the limits: pages, uploads, downloads, event streams, tunnels, aborts, and garbage. */
import { request } from 'node:http';
import { connect } from 'node:net';
import type { Client } from './request.ts';
import type { Tally } from './tally.ts';

const PER_SECOND = 20;
const UPLOAD = Buffer.alloc(200_000, 'u');
const DOWNLOAD_BYTES = 1_000_000;
const EVENTS = 3;
const TUNNEL = Buffer.alloc(50_000, 't');
const PATIENCE_MS = 10_000;
const GARBAGE = [
  '\x16\x03\x01\x02\0\r\n\r\n',
  'GET / HTTP/9.9\r\nHost: a\r\n\r\n',
  'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n',
  'GET / HTTP/1.1\r\nHost: a\r\nBad Header: 1\r\n\r\n',
];

type Act = (context: MixedContext) => Promise<string | null>;

export interface MixedContext {
  readonly client: Client;
  readonly port: number;
  readonly tally: Tally;
}

async function page({ client, tally }: MixedContext): Promise<string | null> {
  const { status, latencyMs } = await client.send('GET', '/s/survey', {});
  tally.answered('page', latencyMs);
  return status === 200 ? null : `status ${status}`;
}

async function preflight({ client, tally }: MixedContext): Promise<string | null> {
  const { status } = await client.send('OPTIONS', '/api/v1/client/soak/responses', {});
  tally.answered('preflight', null);
  return status === 200 ? null : `status ${status}`;
}

async function upload({ client, tally }: MixedContext): Promise<string | null> {
  const { status, text } = await client.send('POST', '/files/upload', {}, UPLOAD);
  tally.answered('upload', null);
  return status === 200 && text.includes(`"bytes":${UPLOAD.length}`)
    ? null
    : `status ${status}, ${text.slice(0, 80)}`;
}

async function download({ client, tally }: MixedContext): Promise<string | null> {
  const { status, text } = await client.send('GET', `/bench/download?bytes=${DOWNLOAD_BYTES}`, {});
  tally.answered('download', null);
  return status === 200 && text.length === DOWNLOAD_BYTES ? null : `status ${status}, ${text.length} bytes`;
}

function eventStream({ port, tally }: MixedContext): Promise<string | null> {
  return within(({ done, onEnd }) => {
    const req = request({ port, host: '127.0.0.1', path: '/bench/events' });
    onEnd(() => req.destroy());
    let text = '';
    req.on('response', (res) => {
      res.on('error', (error) => done(error.message));
      res.on('data', (chunk: Buffer) => {
        text += chunk.toString();
        if (!text.includes(`data: event ${EVENTS - 1}\n`)) return;
        tally.answered('event stream', null);
        done(res.statusCode === 200 ? null : `status ${res.statusCode}`);
      });
    });
    req.on('error', (error) => done(error.message));
    req.end();
  });
}

function tunnel({ port, tally }: MixedContext): Promise<string | null> {
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
        if (received < TUNNEL.length) return;
        tally.answered('tunnel', null);
        done(received === TUNNEL.length ? null : `${received} bytes came back`);
      });
      socket.write(TUNNEL);
    });
    req.on('response', (res) => done(`status ${res.statusCode}`));
    req.on('error', (error) => done(error.message));
    req.end();
  });
}

function abort({ port, tally }: MixedContext): Promise<string | null> {
  return within(({ done, onEnd }) => {
    const req = request({ port, host: '127.0.0.1', path: '/bench/slow?ms=2000' });
    onEnd(() => req.destroy());
    req.on('error', () => done(null));
    req.on('response', (res) => done(`status ${res.statusCode}`));
    req.end();
    setTimeout(() => {
      tally.answered('abort', null);
      done(null);
    }, 50);
  });
}

/** Refused with a 4xx, or closed; never passed on, and never a fault of the gateway. */
function garbage({ port, tally }: MixedContext): Promise<string | null> {
  return within(({ done, onEnd }) => {
    const socket = connect(port, '127.0.0.1');
    onEnd(() => socket.destroy());
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
    });
    socket.on('error', () => done(null));
    socket.on('close', () => {
      tally.answered('garbage', null);
      done(text === '' || /^HTTP\/1\.1 4\d\d /.test(text) ? null : text.slice(0, 60));
    });
    socket.end(GARBAGE[Math.floor(Math.random() * GARBAGE.length)] ?? '');
  });
}

/** Of a hundred acts. Garbage is about 1 % of all requests, those of the limits included. */
const SHARES: readonly (readonly [name: string, share: number, act: Act])[] = [
  ['page', 30, page],
  ['preflight', 10, preflight],
  ['upload', 15, upload],
  ['download', 10, download],
  ['event stream', 10, eventStream],
  ['tunnel', 10, tunnel],
  ['abort', 8, abort],
  ['garbage', 7, garbage],
];

/** @returns ends it, and waits for what is on its way */
export function startMixed(context: MixedContext): () => Promise<void> {
  const running = new Set<Promise<void>>();
  const timer = setInterval(() => {
    const [name, act] = choose();
    const one = act(context)
      .catch((error: Error) => error.message)
      .then((fault) => {
        if (fault !== null) context.tally.fault(`${name}: ${fault}`, new Date().toISOString());
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
  return ['page', page];
}

interface Ending {
  /** @param fault null: as it should be */
  done(fault: string | null): void;
  onEnd(close: () => void): void;
}

/** Whatever an act opens is closed with its end, or when it takes too long. */
function within(act: (ending: Ending) => void): Promise<string | null> {
  return new Promise((resolve) => {
    const closes: (() => void)[] = [];
    const done = (fault: string | null): void => {
      clearTimeout(timer);
      resolve(fault);
      for (const close of closes.splice(0)) close();
    };
    const timer = setTimeout(() => done('no end in time'), PATIENCE_MS);
    act({ done, onEnd: (close) => closes.push(close) });
  });
}
