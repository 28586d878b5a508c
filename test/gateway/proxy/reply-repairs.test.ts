/** Random replies, and the same with violations of the grammar that can be read in one way only. */
import t from 'tap';
import { ReplyParser } from '#gateway/proxy/reply-parser.ts';
import { type Dice, dice, rounds, SEED } from '#test/support/seed.ts';

const ROUNDS = rounds(20_000);
const HEAD_BYTES_MAX = 16_384;

interface Read {
  readonly status: number;
  readonly fields: readonly string[];
  readonly body: string;
  readonly isReusable: boolean;
}

/** @returns null if the reply is refused or not complete */
function read(bytes: Buffer, roll: Dice): Read | null {
  let [status, fields, body]: [number, readonly string[], string] = [0, [], ''];
  let isOver = false;
  const parser = new ReplyParser(HEAD_BYTES_MAX, {
    onInterim: () => undefined,
    onHead: (code, _, headers) => {
      [status, fields] = [code, headers];
    },
    onPiece: (piece) => {
      body += piece.toString('latin1');
    },
    onReplyEnd: () => {
      isOver = true;
    },
    onSwitch: () => undefined,
  });
  parser.begin('GET');
  try {
    for (let at = 0; at < bytes.length && !isOver; ) {
      const to = roll(3) === 0 ? Math.min(bytes.length, at + 1 + roll(20)) : bytes.length;
      parser.read(Buffer.from(bytes.subarray(at, to)));
      at = to;
    }
  } catch {
    return null;
  }
  return isOver ? { status, fields, body, isReusable: parser.isReusable } : null;
}

interface Parts {
  readonly head: readonly string[];
  /** Bytes, and lines between chunks. */
  readonly body: readonly { readonly line?: string; readonly data?: string }[];
}

/** The data of bodies has line ends, so that a head without CR LF could be sought in it. */
const DATA = ['ok', '\r\n\r\n', '\n\n', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', 'x: y\r\n\r\n'];

function randomReply(roll: Dice): Parts {
  const data = Array.from({ length: roll(4) }, () => DATA[roll(DATA.length)] ?? '');
  const fields = Array.from({ length: roll(4) }, (_, i) => `X-${i}: ${'value '.repeat(roll(3))}${i}`);
  const isChunked = roll(2) === 0;
  fields.splice(
    roll(fields.length + 1),
    0,
    isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${data.join('').length}`,
  );
  const chunks = data.flatMap((data) => [{ line: data.length.toString(16) }, { data }, { line: '' }]);
  return {
    head: ['HTTP/1.1 200 OK', ...fields, ''],
    body: isChunked ? [...chunks, { line: '0' }, { line: '' }] : [{ data: data.join('') }],
  };
}

/** @param violate makes a line and its end worse */
function bytesOf({ head, body }: Parts, violate: (line: string, isHead: boolean) => string): Buffer {
  const text = [
    ...head.map((line) => violate(line, true)),
    ...body.map(({ line, data = '' }) => (line === undefined ? data : violate(line, false))),
  ];
  return Buffer.from(text.join(''), 'latin1');
}

t.test(`repaired replies are read like those that obey the grammar, seed ${SEED}`, async (t) => {
  const roll = dice(71);
  let repaired = 0;
  const wrong: string[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const parts = randomReply(roll);
    const plain = read(
      bytesOf(parts, (line) => `${line}\r\n`),
      roll,
    );
    let isViolated = false;
    const odd = bytesOf(parts, (line, isHead) => {
      const kind = roll(6);
      isViolated ||= kind < 2 && (kind === 0 || (isHead && /^[XCT]/.test(line)));
      if (kind === 0) return `${line}\n`;
      return kind === 1 && isHead ? `${line.replace(/^([XCT][^:]*):/, '$1 :')}\r\n` : `${line}\r\n`;
    });
    const result = read(odd, roll);
    if (isViolated) repaired++;
    const expected = plain === null ? null : { ...plain, isReusable: !isViolated };
    if (JSON.stringify(result) !== JSON.stringify(expected)) wrong.push(odd.toString('latin1'));
  }
  t.strictSame(wrong.slice(0, 3), []);
  t.ok(repaired > ROUNDS / 4, `${repaired} violated the grammar`);
});

t.test(`only heads that obey the grammar pass, whatever bytes are changed, seed ${SEED}`, async (t) => {
  const roll = dice(72);
  const wrong: string[] = [];
  let accepted = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const bytes = bytesOf(randomReply(roll), (line) => `${line}\r\n`);
    const before = Buffer.from(bytes);
    for (let changes = 1 + roll(3); changes > 0; changes--) {
      const odd = ['\r', '\n', '\0', ' ', '\t', ':', '\x0b', ',', ';', '2', '\x80'][roll(11)] ?? '';
      bytes.write(odd, roll(bytes.length), 'latin1');
    }
    const whole = read(bytes, () => 1);
    const inPieces = read(bytes, roll);
    if (whole !== null) accepted++;
    const isValid = whole?.fields.every((text, i) =>
      (i % 2 === 0 ? /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/ : /^[\t\x20-\x7e\x80-\xff]*$/).test(text),
    );
    const lengths =
      whole?.fields.filter((text, i) => i % 2 === 0 && /^content-length$/i.test(text)).length ?? 0;
    const isSame =
      JSON.stringify({ ...whole, isReusable: 0 }) === JSON.stringify({ ...inPieces, isReusable: 0 });
    if (isValid === false || lengths > 1 || !isSame)
      wrong.push(`${before.toString('latin1')} became ${bytes.toString('latin1')}`);
  }
  t.strictSame(wrong.slice(0, 3), []);
  t.ok(accepted > 0 && accepted < ROUNDS, `${accepted} of ${ROUNDS} were read`);
});
