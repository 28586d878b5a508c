/** Taking and not giving back: streams, tunnels, downloads, slow answers, silent connections. */
import type { AbuseScenario } from '../scenario.ts';
import { type Attacker, type Connection, head } from './attacker.ts';

const DOWNLOAD = '/bench/download';
const HANDSHAKE = [
  'Upgrade: websocket',
  'Connection: Upgrade',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
];

function holdRequests(attacker: Attacker, connections: number, request: string, reads = true): void {
  attacker.hold(connections, (connection) => attacker.request(connection, request), { reads });
}

/** A reader that takes a little at a time. */
function sip(attacker: Attacker, connection: Connection, ms: number): void {
  const { socket } = connection;
  socket.pause();
  attacker.drip(connection, ms, () => {
    socket.resume();
    setImmediate(() => socket.pause());
  });
}

export const HOARDING: readonly AbuseScenario[] = [
  {
    name: 'event-streams',
    title: '300 event streams, held open',
    attack: (attacker) => holdRequests(attacker, 300, head('GET', '/bench/events')),
  },
  {
    name: 'unread-downloads',
    title: '300 downloads of 50 MB that are not read',
    attack: (attacker) => holdRequests(attacker, 300, head('GET', DOWNLOAD), false),
  },
  {
    name: 'slow-readers',
    title: '300 downloads of 50 MB, read a piece a second',
    attack(attacker) {
      attacker.hold(300, (connection) => {
        attacker.request(connection, head('GET', DOWNLOAD));
        sip(attacker, connection, 1000);
      });
    },
  },
  {
    name: 'websockets',
    title: '300 WebSockets, held open',
    attack: (attacker) => holdRequests(attacker, 300, head('GET', '/bench/echo', HANDSHAKE)),
  },
  {
    name: 'unread-websockets',
    title: '100 WebSockets that send to an echo, 20 MB/s altogether, and do not read',
    attack(attacker) {
      const piece = Buffer.alloc(20_000, 'x');
      attacker.hold(
        100,
        (connection) => {
          attacker.request(connection, head('GET', '/bench/echo', HANDSHAKE));
          attacker.drip(connection, 100, () => {
            if (!connection.socket.writableNeedDrain) connection.socket.write(piece);
          });
        },
        { reads: false },
      );
    },
  },
  {
    name: 'slow-answers',
    title: '500 requests that the upstream takes 10 s for',
    attack: (attacker) => holdRequests(attacker, 500, head('GET', '/bench/slow?ms=10000')),
  },
  {
    name: 'ipv6-network',
    title: '500 clients of one IPv6 /48 with a request each that the upstream takes 10 s for',
    trustsAttacker: true,
    attack(attacker) {
      let client = 0;
      attacker.hold(500, (connection) => {
        const from = `X-Forwarded-For: 2001:db8:0:${(client++ & 0xffff).toString(16)}::1`;
        attacker.request(connection, head('GET', '/bench/slow?ms=10000', [from]));
      });
    },
  },
  {
    name: 'idle-connections',
    title: '600 connections that say nothing',
    attack: (attacker) => attacker.hold(600, () => undefined),
  },
  {
    name: 'idle-keep-alive',
    title: '500 connections with one request each, then idle',
    attack: (attacker) => holdRequests(attacker, 500, head('GET', '/bench/small')),
  },
  {
    name: 'pipelining-unread',
    title: '50 connections with 1,000 pipelined requests each, never read',
    attack(attacker) {
      const burst = head('GET', '/bench/small').repeat(1000);
      attacker.hold(50, (connection) => attacker.request(connection, burst), { reads: false });
    },
  },
];
