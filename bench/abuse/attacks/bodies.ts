/** Bodies that are sent slowly or in tiny pieces, are abandoned, or never come. */
import { connect } from 'node:tls';
import { raiseLimits } from '#bench/peers/floodgate.ts';
import { beginFramed } from '#test/support/http2-frames.ts';
import { type Attacker, head } from '../attacker.ts';
import { countByEmail, RESPONSES, scenario } from '../scenario.ts';

const PIECE = Buffer.alloc(65_536, 'x');
/** As many bytes as the window of a stream has. */
const FRAMES = 65_000;

function begin(bytes: number, path = RESPONSES, fields: readonly string[] = []): string {
  return head('POST', path, [`Content-Length: ${bytes}`, ...fields]);
}

/** Sends until it gets a reply, then disappears, as `curl -H Expect: --data-binary @20MB` does. */
function leaveAfterEarlyReply(path: string) {
  return (attacker: Attacker): void =>
    attacker.hold(
      128,
      (connection) => {
        attacker.request(connection, begin(20_000_000, path));
        connection.socket.write(PIECE);
      },
      { onData: ({ socket }) => socket.destroy() },
    );
}

function drip(connections: number, bytes: number, ms: number, piece: string | Buffer) {
  return (attacker: Attacker): void =>
    attacker.hold(connections, (connection) => {
      attacker.request(connection, begin(bytes));
      attacker.drip(connection, ms, () => connection.socket.write(piece));
    });
}

function sendChunks(attacker: Attacker): void {
  const chunks = '1\r\nx\r\n'.repeat(10_000);
  attacker.hold(20, (connection) => {
    const { socket } = connection;
    attacker.request(connection, head('POST', RESPONSES, ['Transfer-Encoding: chunked']));
    const fill = (): void => {
      while (socket.writable && socket.write(chunks));
    };
    socket.on('drain', fill);
    fill();
  });
}

function sendFrames(attacker: Attacker): void {
  const { counts } = attacker;
  attacker.hold(
    20,
    ({ socket: below }) => {
      const socket = connect({ socket: below, ALPNProtocols: ['h2'], rejectUnauthorized: false }, () => {
        counts.requests++;
        const request = beginFramed(socket, RESPONSES);
        request.send(FRAMES, 1);
        request.status.then((status) => {
          counts.answers[status] = (counts.answers[status] ?? 0) + 1;
          below.destroy();
        });
      });
      socket.on('error', () => below.destroy());
    },
    { reads: false },
  );
}

/** Bodies that are read before the decision: a third comes slowly, a third is endless, a third leaves half-way. */
function sendToBeRead(attacker: Attacker): void {
  let i = 0;
  attacker.hold(500, (connection) => {
    const { socket } = connection;
    const kind = i++ % 3;
    const framing = kind === 1 ? 'Transfer-Encoding: chunked' : 'Content-Length: 8000';
    const fields = ['Content-Type: application/json', framing];
    attacker.request(connection, `${head('POST', RESPONSES, fields)}`);
    if (kind === 0) attacker.drip(connection, 1000, () => socket.write('{'));
    else if (kind === 1) attacker.drip(connection, 100, () => socket.write(`400\r\n${' '.repeat(1024)}\r\n`));
    else {
      socket.write('{"email":"a'.padEnd(4000));
      setTimeout(() => socket.destroy(), 500);
    }
  });
}

export const BODIES = [
  scenario(
    'early-413-leave',
    '128 uploads that leave after an early 413',
    leaveAfterEarlyReply('/bench/early-413'),
  ),
  scenario(
    'early-401-leave',
    '128 uploads that leave after an early 401',
    leaveAfterEarlyReply('/bench/early-401'),
  ),
  scenario('slow-bodies', '200 bodies of 1 MB at 4 bytes a second', drip(200, 1_000_000, 250, 'x')),
  scenario('slow-small-bodies', '400 bodies of 10 KB at 1 byte a second', drip(400, 10_000, 1000, 'x')),
  scenario(
    'steady-uploads',
    '200 bodies of 20 MB at 10 KB a second: too fast to be called slow',
    drip(200, 20_000_000, 100, PIECE.subarray(0, 1024)),
  ),
  scenario('one-byte-chunks', 'chunked bodies in chunks of 1 byte, as fast as they are read', sendChunks),
  scenario('one-byte-frames', 'HTTP/2 bodies in frames of 1 byte, as fast as they are read', sendFrames, {
    ...{ isTls: true, isForFloodgateOnly: true },
  }),
  scenario('expect-and-leave', '128 uploads that expect 100-continue and leave when it comes', (attacker) =>
    attacker.hold(
      128,
      (connection) => {
        attacker.request(connection, begin(20_000_000, RESPONSES, ['Expect: 100-continue']));
        setTimeout(() => connection.socket.destroy(), 200);
      },
      { onData: ({ socket }) => socket.destroy() },
    ),
  ),
  scenario(
    'bodies-to-be-read',
    '500 bodies that are read before the decision: slow, endless, or abandoned',
    sendToBeRead,
    {
      isForFloodgateOnly: true,
      policies(file) {
        raiseLimits(file);
        countByEmail(file);
      },
    },
  ),
  scenario('half-sent-bodies', '200 bodies that end early with a half-closed socket', (attacker) =>
    attacker.hold(
      200,
      (connection) => {
        attacker.request(connection, begin(20_000_000));
        connection.socket.end(PIECE);
      },
      { allowHalfOpen: true },
    ),
  ),
];
