/** The life of connections: opened slowly, closed early, reset, half-closed, filled with what is not HTTP. */
import type { AbuseScenario } from '../scenario.ts';
import { type Attacker, type Connection, type ConnectOptions, head } from './attacker.ts';

function churn(
  attacker: Attacker,
  perSecond: number,
  begin: (connection: Connection) => void,
  options: ConnectOptions = {},
): void {
  attacker.pace(perSecond, () => attacker.connect(begin, options));
}

function leave(attacker: Attacker, request: string): void {
  churn(attacker, 50, (connection) => {
    attacker.request(connection, request);
    setTimeout(() => connection.socket.destroy(), 60);
  });
}

const GARBAGE = [
  // A TLS hello, the preface of HTTP/2, a proxy's wish, a line without an end, framing that says two things.
  Buffer.from('160301020001000001fc0303', 'hex'),
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'CONNECT 10.0.0.1:25 HTTP/1.1\r\nHost: 10.0.0.1:25\r\n\r\n',
  `GET /${'a'.repeat(20_000)}`,
  'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'GET / HTTP/1.1\r\nHost: a\r\nBad Name: x\r\n\r\n',
  '\0\0\0\0\r\n\r\n',
];

export const CONNECTIONS: readonly AbuseScenario[] = [
  {
    name: 'slowloris',
    title: '500 header sections, a line a second',
    attack(attacker) {
      attacker.hold(500, (connection) => {
        attacker.request(connection, 'GET /bench/small HTTP/1.1\r\nHost: bench.example\r\n');
        attacker.drip(connection, 1000, () => connection.socket.write('X-Wait: 1\r\n'));
      });
    },
  },
  {
    name: 'churn',
    title: '500 connections a second, one request each',
    attack(attacker) {
      const request = head('GET', '/bench/small', ['Connection: close']);
      churn(attacker, 500, (connection) => attacker.request(connection, request));
    },
  },
  {
    name: 'half-closed',
    title: '300 requests a second, each half-closed at once',
    attack(attacker) {
      churn(
        attacker,
        300,
        (connection) => {
          attacker.request(connection, head('GET', '/bench/slow?ms=500'));
          connection.socket.end();
        },
        { onData: ({ socket }) => socket.destroy() },
      );
    },
  },
  {
    name: 'resets',
    title: '500 requests a second, each followed by a reset',
    attack(attacker) {
      churn(attacker, 500, (connection) => {
        attacker.request(connection, head('GET', '/bench/small'));
        setImmediate(() => connection.socket.resetAndDestroy());
      });
    },
  },
  {
    name: 'leavers-counted',
    title: '50 requests a second that count when they succeed, left after 60 ms',
    limits: 'leavers',
    targets: ['floodgate'],
    admittedPerMinuteMax: 100,
    attack: (attacker) => leave(attacker, head('GET', '/bench/slow?ms=1000')),
  },
  {
    name: 'leavers-in-flight',
    title: '50 requests a second, three in flight, 10 s each, left after 60 ms',
    limits: 'leavers',
    targets: ['floodgate'],
    // Six times three, and those of the minute before.
    admittedPerMinuteMax: 21,
    attack: (attacker) => leave(attacker, head('POST', '/bench/slow?ms=10000', ['Content-Length: 0'])),
  },
  {
    name: 'aborts',
    title: '300 requests a second to a slow route, left after 20 ms',
    attack(attacker) {
      churn(attacker, 300, (connection) => {
        attacker.request(connection, head('GET', '/bench/slow?ms=5000'));
        setTimeout(() => connection.socket.destroy(), 20);
      });
    },
  },
  {
    name: 'download-aborts',
    title: '100 downloads a second, left at the first byte',
    attack(attacker) {
      churn(attacker, 100, (connection) => attacker.request(connection, head('GET', '/bench/download')), {
        onData: ({ socket }) => socket.destroy(),
      });
    },
  },
  {
    name: 'garbage',
    title: '500 connections a second with what is not HTTP/1.1',
    attack(attacker) {
      let i = 0;
      churn(attacker, 500, (connection) => {
        attacker.request(connection, GARBAGE[i++ % GARBAGE.length] ?? '');
        setTimeout(() => connection.socket.destroy(), 500);
      });
    },
  },
];
