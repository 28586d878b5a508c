/** Bodies that are sent slowly or in tiny pieces, are abandoned, or never come. */
import type { Socket } from 'node:net';
import { type PolicyFile, raiseLimits } from '#bench/peers/floodgate.ts';
import { type Attack, type Attacker, head, hold } from '../attacker.ts';
import { countByEmail, RESPONSES, SMALL, scenarios } from '../scenario.ts';

const PIECE = 'x'.repeat(65_536);
/** Less than the gateway reads of a body that is refused. */
const REFUSED_BYTES = 8_000_000;
const JSON_BODY = 'Content-Type: application/json';

function begin(bytes: number, path = RESPONSES, fields: readonly string[] = []): string {
  return head('POST', path, [`Content-Length: ${bytes}`, ...fields]);
}

function limitUploads(file: PolicyFile): void {
  raiseLimits(file);
  file.policies.push({
    ...{ name: 'uploads', route: `POST ${SMALL}`, identifier: 'ip', limit: 100, window: '1m' },
  });
}

function sendChunks(socket: Socket): void {
  const chunks = '1\r\nx\r\n'.repeat(10_000);
  const fill = (): void => {
    while (socket.writable && socket.write(chunks));
  };
  socket.on('drain', fill);
  fill();
}

/**
 * Sends bodies that are read before the decision. A third is slow, a third is endless, a third is abandoned half-way.
 */
function sendToBeRead(attacker: Attacker): void {
  const counted = begin(8000, RESPONSES, [JSON_BODY]);
  const chunked = head('POST', RESPONSES, [JSON_BODY, 'Transfer-Encoding: chunked']);
  const chunk = `400\r\n${' '.repeat(1024)}\r\n`;
  attacker.hold(167, { send: counted, drip: { bytes: '{', everyMs: 1000 } });
  attacker.hold(167, { send: chunked, drip: { bytes: chunk, everyMs: 100 } });
  attacker.hold(166, { send: `${counted}${'{"email":"a'.padEnd(4000)}`, leaveAfterMs: 500 });
}

/** Sends uploads that are refused, one after the other and as fast as they are read. The replies do not matter. */
function sendRefused(socket: Socket): void {
  const pieces = Math.floor(REFUSED_BYTES / PIECE.length);
  const upload = begin(pieces * PIECE.length, SMALL);
  let sent = 0;
  const fill = (): void => {
    while (socket.writable && socket.write(sent++ % (pieces + 1) === 0 ? upload : PIECE));
  };
  socket.on('drain', fill);
  fill();
}

/** Sends the same requests as `curl -H Expect: --data-binary @20MB`. */
function leaveEarly(status: number): Attack {
  const send = `${begin(20_000_000, `/bench/early-${status}`)}${PIECE}`;
  return hold(128, { send, leavesAtReply: true });
}

export const BODIES = scenarios({
  'early-413-leave': ['128 uploads that leave after an early 413', leaveEarly(413)],
  'early-401-leave': ['128 uploads that leave after an early 401', leaveEarly(401)],
  'refused-uploads': [
    '128 connections with uploads of 8 MB over the limit, as fast as they are read',
    hold(128, { act: sendRefused }),
    { policies: limitUploads, admittedPerMinuteMax: 100 },
  ],
  'slow-bodies': [
    '200 bodies of 1 MB at 4 bytes a second',
    hold(200, { send: begin(1_000_000), drip: { bytes: 'x', everyMs: 250 } }),
  ],
  'steady-uploads': [
    '200 bodies of 20 MB at 10 KB a second: too fast to be called slow',
    hold(200, { send: begin(20_000_000), drip: { bytes: 'x'.repeat(1024), everyMs: 100 } }),
  ],
  'one-byte-chunks': [
    'chunked bodies in chunks of 1 byte, as fast as they are read',
    hold(20, { send: head('POST', RESPONSES, ['Transfer-Encoding: chunked']), act: sendChunks }),
  ],
  'expect-and-leave': [
    '128 uploads that expect 100-continue and leave when it comes',
    hold(128, {
      send: begin(20_000_000, RESPONSES, ['Expect: 100-continue']),
      ...{ leavesAtReply: true, leaveAfterMs: 200 },
    }),
  ],
  'bodies-to-be-read': [
    '500 bodies that are read before the decision: slow, endless, or abandoned',
    sendToBeRead,
    {
      policies(file) {
        raiseLimits(file);
        countByEmail(file);
      },
    },
  ],
  'half-sent-bodies': [
    '200 bodies that end early with a half-closed socket',
    hold(200, { send: `${begin(20_000_000)}${PIECE}`, isHalfClosed: true }),
  ],
});
