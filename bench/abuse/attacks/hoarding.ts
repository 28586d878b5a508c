/** Clients that hold what they take: streams, tunnels, downloads, slow replies, idle connections. */
import { raiseLimits } from '#bench/peers/floodgate.ts';
import { type Attacker, head } from '../attacker.ts';
import { DOWNLOAD, SMALL, scenario } from '../scenario.ts';

const UPGRADE = ['Upgrade: websocket', 'Connection: Upgrade', 'Sec-WebSocket-Version: 13'];
const WEBSOCKET = head('GET', '/bench/echo', [...UPGRADE, 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==']);

function readSlowly(attacker: Attacker): void {
  attacker.hold(300, (connection) => {
    const { socket } = connection;
    attacker.request(connection, head('GET', DOWNLOAD));
    socket.pause();
    attacker.drip(connection, 1000, () => {
      socket.resume();
      setImmediate(() => socket.pause());
    });
  });
}

function sendToEchoUnread(attacker: Attacker): void {
  const piece = Buffer.alloc(20_000, 'x');
  attacker.hold(
    100,
    (connection) => {
      attacker.request(connection, WEBSOCKET);
      attacker.drip(connection, 100, () => {
        if (!connection.socket.writableNeedDrain) connection.socket.write(piece);
      });
    },
    { reads: false },
  );
}

function spreadOverNetwork(attacker: Attacker): void {
  let client = 0;
  attacker.hold(500, (connection) => {
    const from = `X-Forwarded-For: 2001:db8:0:${(client++ & 0xffff).toString(16)}::1`;
    attacker.request(connection, head('GET', '/bench/slow?ms=10000', [from]));
  });
}

/** Each reply is followed by the next request, so that the attacker has its share in progress all the time. */
function askSlowly(attacker: Attacker): void {
  const request = head('GET', '/bench/slow?ms=2000');
  attacker.hold(100, (connection) => attacker.request(connection, request), {
    onData: (connection) => attacker.request(connection, request),
  });
}

export const HOARDING = [
  scenario('event-streams', '300 open event streams', (attacker) =>
    attacker.holdRequests(300, head('GET', '/bench/events')),
  ),
  scenario('unread-downloads', '300 downloads of 50 MB that are not read', (attacker) =>
    attacker.holdRequests(300, head('GET', DOWNLOAD), { reads: false }),
  ),
  scenario('slow-readers', '300 downloads of 50 MB, read a piece a second', readSlowly),
  scenario('websockets', '300 open WebSockets', (attacker) => attacker.holdRequests(300, WEBSOCKET)),
  scenario(
    'unread-websockets',
    '100 WebSockets that send 20 MB/s in total to an echo and do not read',
    sendToEchoUnread,
  ),
  scenario('slow-answers', '500 requests that take the upstream 10 s', (attacker) =>
    attacker.holdRequests(500, head('GET', '/bench/slow?ms=10000')),
  ),
  scenario(
    'slow-answers-protected',
    '100 requests that take the upstream 2 s, again and again, with protect: on',
    askSlowly,
    {
      policies(file) {
        raiseLimits(file);
        file.protect = 'on';
      },
      isForFloodgateOnly: true,
    },
  ),
  scenario(
    'ipv6-network',
    '500 clients of one IPv6 /48, each with a request that takes the upstream 10 s',
    spreadOverNetwork,
    { trustsAttacker: true },
  ),
  scenario('idle-connections', '600 silent connections', (attacker) => attacker.hold(600, () => undefined)),
  scenario('idle-keep-alive', '500 connections that are idle after one request', (attacker) =>
    attacker.holdRequests(500, head('GET', SMALL)),
  ),
  scenario(
    'pipelining-unread',
    '50 connections with 1,000 pipelined requests each, whose replies are not read',
    (attacker) => attacker.holdRequests(50, head('GET', SMALL).repeat(1000), { reads: false }),
  ),
];
