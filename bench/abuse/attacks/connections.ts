/** Connections that are opened slowly, closed early, reset, half-closed, or used for something else than HTTP. */
import { type PolicyFile, raiseLimits } from '#bench/peers/floodgate.ts';
import { get, head, hold, inTurn, open } from '../attacker.ts';
import { DOWNLOAD, SMALL, scenarios } from '../scenario.ts';

/**
 * Invalid requests: a TLS hello, the preface of HTTP/2, CONNECT, an endless line, contradictory framing, an invalid
 * field name, zeros, an unknown version, and a path that cannot be decoded.
 */
export const GARBAGE = [
  Buffer.from('160301020001000001fc0303', 'hex'),
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'CONNECT 10.0.0.1:25 HTTP/1.1\r\nHost: 10.0.0.1:25\r\n\r\n',
  `GET /${'a'.repeat(20_000)}`,
  'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'GET / HTTP/1.1\r\nHost: a\r\nBad Name: x\r\n\r\n',
  '\0\0\0\0\r\n\r\n',
  'GET / HTTP/9.9\r\nHost: a\r\n\r\n',
  'GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n',
];

/** Adds limits that count successful requests, and requests in flight. */
function limitLeavers(file: PolicyFile): void {
  raiseLimits(file);
  const policy = { identifier: 'ip' };
  file.policies.push(
    { ...policy, name: 'successes', route: 'GET /bench/slow', limit: 100, window: '1m', count: 'success' },
    { ...policy, name: 'in-flight', route: 'POST /bench/slow', concurrency: 3 },
  );
}

export const CONNECTIONS = scenarios({
  slowloris: [
    '500 header sections, a line a second',
    hold(500, {
      send: `GET ${SMALL} HTTP/1.1\r\nHost: bench.example\r\n`,
      drip: { bytes: 'X-Wait: 1\r\n', everyMs: 1000 },
    }),
  ],
  churn: ['500 connections a second', open(500, { send: get(SMALL, ['Connection: close']) })],
  'half-closed': [
    '300 requests a second, each half-closed at once',
    open(300, { send: get('/bench/slow?ms=500'), isHalfClosed: true, leavesAtReply: true }),
  ],
  resets: [
    '500 requests a second, each followed by a reset',
    open(500, {
      send: get(SMALL),
      act: (socket) => void setImmediate(() => socket.resetAndDestroy()),
    }),
  ],
  'leavers-counted': [
    '50 requests a second that count when they succeed, left after 60 ms',
    open(50, { send: get('/bench/slow?ms=1000'), leaveAfterMs: 60 }),
    { policies: limitLeavers, admittedPerMinuteMax: 100 },
  ],
  // Three requests of 10 s fit six times into a minute. Three more are from the minute before.
  'leavers-in-flight': [
    '50 requests a second, three in flight, 10 s each, left after 60 ms',
    open(50, { send: head('POST', '/bench/slow?ms=10000', ['Content-Length: 0']), leaveAfterMs: 60 }),
    { policies: limitLeavers, admittedPerMinuteMax: 21 },
  ],
  aborts: [
    '300 requests a second to a slow route, left after 20 ms',
    open(300, { send: get('/bench/slow?ms=5000'), leaveAfterMs: 20 }),
  ],
  'download-aborts': [
    '100 downloads a second, left at the first byte',
    open(100, { send: get(DOWNLOAD), leavesAtReply: true }),
  ],
  garbage: [
    '500 connections a second with something else than HTTP/1.1',
    open(500, { send: inTurn(GARBAGE), leaveAfterMs: 500 }),
  ],
});
