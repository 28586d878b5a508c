/** Bodies: sent slowly, in crumbs, left behind, or announced and never sent. */
import { connect } from 'node:tls';
import { beginFramed } from '#test/support/http2-frames.ts';
import type { AbuseScenario } from '../scenario.ts';
import { type Attacker, head } from './attacker.ts';

const FILE_BYTES = 20_000_000;
const PIECE = Buffer.alloc(65_536, 'x');
/** As many bytes as fit into the window of a stream. */
const FRAMES = 65_000;
const UPLOAD = '/api/v1/client/bench/responses';

/** Sends on until it is answered, then leaves without a word: what `curl -H Expect: --data-binary @20MB` does. */
function leaveAfterEarlyAnswer(attacker: Attacker, path: string): void {
  attacker.hold(
    128,
    (connection) => {
      attacker.request(connection, head('POST', path, [`Content-Length: ${FILE_BYTES}`]));
      connection.socket.write(PIECE);
    },
    { onData: ({ socket }) => socket.destroy() },
  );
}

export const UPLOADS: readonly AbuseScenario[] = [
  {
    name: 'early-413-leave',
    title: '128 uploads that leave after an early 413',
    attack: (attacker) => leaveAfterEarlyAnswer(attacker, '/bench/early-413'),
  },
  {
    name: 'early-401-leave',
    title: '128 uploads that leave after an early 401',
    attack: (attacker) => leaveAfterEarlyAnswer(attacker, '/bench/early-401'),
  },
  {
    name: 'slow-bodies',
    title: '200 bodies of 1 MB at 4 bytes a second',
    attack(attacker) {
      attacker.hold(200, (connection) => {
        attacker.request(connection, head('POST', UPLOAD, ['Content-Length: 1000000']));
        attacker.drip(connection, 250, () => connection.socket.write('x'));
      });
    },
  },
  {
    name: 'slow-small-bodies',
    title: '400 bodies of 10 KB at 1 byte a second',
    attack(attacker) {
      attacker.hold(400, (connection) => {
        attacker.request(connection, head('POST', UPLOAD, ['Content-Length: 10000']));
        attacker.drip(connection, 1000, () => connection.socket.write('x'));
      });
    },
  },
  {
    name: 'steady-uploads',
    title: '200 bodies of 20 MB at 10 KB a second: too quick to be called slow',
    attack(attacker) {
      const piece = PIECE.subarray(0, 1024);
      attacker.hold(200, (connection) => {
        attacker.request(connection, head('POST', UPLOAD, [`Content-Length: ${FILE_BYTES}`]));
        attacker.drip(connection, 100, () => connection.socket.write(piece));
      });
    },
  },
  {
    name: 'one-byte-chunks',
    title: 'chunked bodies in chunks of 1 byte, as fast as they are read',
    attack(attacker) {
      const chunks = '1\r\nx\r\n'.repeat(10_000);
      attacker.hold(20, (connection) => {
        const { socket } = connection;
        attacker.request(connection, head('POST', UPLOAD, ['Transfer-Encoding: chunked']));
        const fill = (): void => {
          while (socket.writable && socket.write(chunks));
        };
        socket.on('drain', fill);
        fill();
      });
    },
  },
  {
    name: 'one-byte-frames',
    title: 'bodies over HTTP/2 in frames of 1 byte, as fast as they are read',
    isTls: true,
    targets: ['floodgate'],
    attack(attacker) {
      attacker.hold(
        20,
        ({ socket: below }) => {
          const socket = connect({ socket: below, ALPNProtocols: ['h2'], rejectUnauthorized: false }, () => {
            attacker.counts.requests++;
            const request = beginFramed(socket, UPLOAD);
            request.send(FRAMES, 1);
            request.status.then((status) => {
              attacker.counts.answers[status] = (attacker.counts.answers[status] ?? 0) + 1;
              below.destroy();
            });
          });
          socket.on('error', () => below.destroy());
        },
        { reads: false },
      );
    },
  },
  {
    name: 'expect-and-leave',
    title: '128 at a time that expect 100-continue and leave on it',
    attack(attacker) {
      attacker.hold(
        128,
        (connection) => {
          const fields = [`Content-Length: ${FILE_BYTES}`, 'Expect: 100-continue'];
          attacker.request(connection, head('POST', UPLOAD, fields));
          setTimeout(() => connection.socket.destroy(), 200);
        },
        { onData: ({ socket }) => socket.destroy() },
      );
    },
  },
  {
    name: 'half-sent-bodies',
    title: '200 bodies that end half-way with a half-closed socket',
    attack(attacker) {
      attacker.hold(
        200,
        (connection) => {
          attacker.request(connection, head('POST', UPLOAD, [`Content-Length: ${FILE_BYTES}`]));
          connection.socket.end(PIECE);
        },
        { allowHalfOpen: true },
      );
    },
  },
];
