/** Attacks that keep resources for a long time: streams, tunnels, downloads, slow replies, idle connections. */
import type { Socket } from 'node:net';
import { get, head, hold, open, repeat } from '../attacker.ts';
import { DOWNLOAD, SMALL, scenarios } from '../scenario.ts';

const UPGRADE = ['Upgrade: websocket', 'Connection: Upgrade', 'Sec-WebSocket-Version: 13'];
const WEBSOCKET = get('/bench/echo', [...UPGRADE, 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==']);

const SLOW = get('/bench/slow?ms=10000');

function readSlowly(socket: Socket): void {
  socket.pause();
  repeat(socket, 1000, () => {
    socket.resume();
    setImmediate(() => socket.pause());
  });
}

const UPLOAD = Buffer.from(head('POST', SMALL, ['Content-Length: 10000000']) + 'x'.repeat(262_144));
const BEHIND = Buffer.concat([Buffer.from(SLOW), UPLOAD]);

/** Sends an upload when the request before it is waiting. */
function uploadBehind(socket: Socket): void {
  setTimeout(() => socket.write(UPLOAD), 100);
}

let clients = 0;

function askFromNetwork(): string {
  const from = `X-Forwarded-For: 2001:db8:0:${(clients++ & 0xffff).toString(16)}::1`;
  return get('/bench/slow?ms=10000', [from]);
}

export const HOARDING = scenarios({
  'event-streams': ['300 open event streams', hold(300, { send: get('/bench/events') })],
  'unread-downloads': ['300 unread downloads of 50 MB', hold(300, { send: get(DOWNLOAD), isUnread: true })],
  'unread-states': [
    'workspace states of 8 MiB, asked for 20 times a second and not read',
    open(20, { send: get(`${DOWNLOAD}?bytes=8388608`), isUnread: true }),
  ],
  'slow-readers': [
    '300 downloads of 50 MB, read a piece a second',
    hold(300, { send: get(DOWNLOAD), act: readSlowly }),
  ],
  websockets: ['300 open WebSockets', hold(300, { send: WEBSOCKET })],
  'unread-websockets': [
    '100 WebSockets that send 20 MB/s in total to an echo and do not read',
    hold(100, { send: WEBSOCKET, drip: { bytes: 'x'.repeat(20_000), everyMs: 100 }, isUnread: true }),
  ],
  'slow-answers': ['500 requests that take the upstream 10 s', hold(500, { send: SLOW })],
  'bytes-behind': [
    '500 requests that take the upstream 10 s, and later 256 KiB of an upload behind each',
    hold(500, { send: SLOW, act: uploadBehind }),
  ],
  'bytes-behind-at-once': [
    '500 requests that take the upstream 10 s, each sent together with 256 KiB of an upload',
    hold(500, { send: BEHIND }),
  ],
  'ipv6-network': [
    '500 clients of one IPv6 /48, each with a request that takes the upstream 10 s',
    hold(500, { send: askFromNetwork }),
    { trustsAttacker: true },
  ],
  'idle-connections': ['600 silent connections', hold(600, {})],
  'idle-keep-alive': ['500 connections that are idle after one request', hold(500, { send: get(SMALL) })],
  'pipelining-unread': [
    '50 connections with 1,000 pipelined requests each, whose replies are not read',
    hold(50, { send: get(SMALL).repeat(1000), isUnread: true }),
  ],
});
