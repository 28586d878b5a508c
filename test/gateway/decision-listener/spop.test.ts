/** Frames of SPOP as bytes, written by hand or by a codec that shares no code with the agent's. */
import t from 'tap';
import {
  FrameError,
  headersIn,
  readFrame,
  setVariable,
  writeAck,
  writeHello,
} from '#gateway/decision-listener/spop.ts';
import { seededRandom } from '#test/support/slow-proxy.ts';
import {
  frame,
  HELLO,
  headersBin,
  hello,
  type Item,
  notify,
  pairs,
  text,
  varint,
} from '#test/support/spop-client.ts';

function problemOf(read: () => unknown): FrameError | null {
  try {
    read();
    return null;
  } catch (error) {
    if (error instanceof FrameError) return error;
    throw error;
  }
}

t.test('reads and writes numbers at each edge of their encoding', async (t) => {
  const edges = [0, 1, 239, 240, 241, 2287, 2288, 2289, 264_431, 264_432, 33_818_863, 33_818_864];
  for (const number of [...edges, 2 ** 32 - 1]) {
    const read = readFrame(notify([1, 2], { number }));
    t.equal(read.kind === 'notify' ? read.args?.get('number') : null, number, `read ${number}`);
    const action = setVariable('n', number === 2 ** 32 - 1 ? 2 ** 32 - 2 : number);
    const written = Buffer.from(action, 'latin1').subarray(6);
    t.strictSame(written, varint(number === 2 ** 32 - 1 ? 2 ** 32 - 2 : number), `write ${number}`);
  }
  t.match(
    problemOf(() => readFrame(Buffer.alloc(30, 255).fill(1, 0, 1))),
    { message: /more than 64 bits/ },
  );
});

t.test('an ACK repeats the ids, also those of 64 bits', async (t) => {
  const ids = Buffer.concat([varint(2n ** 64n - 1n), varint(300)]);
  const empty = Buffer.concat([Buffer.from([3, 0, 0, 0, 1]), ids, text('request'), Buffer.from([0])]);
  const read = readFrame(empty);
  if (read.kind !== 'notify') throw new Error('it is a NOTIFY');
  t.same(read.args, new Map());
  const bytes = Buffer.from(writeAck(read.ids, setVariable('status', 429)), 'latin1');
  t.equal(bytes.readUInt32BE(), bytes.length - 4);
  const action = Buffer.concat([Buffer.from([1, 3, 2]), text('status'), Buffer.from([3]), varint(429)]);
  t.strictSame(bytes.subarray(4), Buffer.concat([Buffer.from([103, 0, 0, 0, 1]), ids, action]));
});

t.test('reads and writes every type of value, and refuses unknown ones', async (t) => {
  const values: readonly (readonly [string, Buffer, unknown])[] = [
    ['null', Buffer.from([0]), null],
    ['false', Buffer.from([1]), false],
    ['true', Buffer.from([0x11]), true],
    ['32 bits', Buffer.from([2, 7]), 7],
    ['64 bits', Buffer.concat([Buffer.from([5]), varint(2 ** 40)]), 2 ** 40],
    ['IPv4', Buffer.from([6, 192, 0, 2, 1]), '192.0.2.1'],
    [
      'IPv6',
      Buffer.from([7, 32, 1, 13, 184, ...Array(11).fill(0), 1]),
      '2001:0db8:0000:0000:0000:0000:0000:0001',
    ],
    ['text', Buffer.concat([Buffer.from([8]), text('é')]), 'Ã©'],
    ['binary', Buffer.concat([Buffer.from([9]), text(Buffer.from([0, 255]))]), '\0ÿ'],
  ];
  for (const [name, bytes, expected] of values) {
    const payload = Buffer.concat([text('m'), Buffer.from([1]), text('a'), bytes]);
    const read = readFrame(frame(3, [0, 0], payload));
    t.equal(read.kind === 'notify' ? read.args?.get('a') : undefined, expected, name);
  }
  const unknown = frame(
    3,
    [0, 0],
    Buffer.concat([text('m'), Buffer.from([1]), text('a'), Buffer.from([10])]),
  );
  t.match(
    problemOf(() => readFrame(unknown)),
    { status: 4, message: /unknown type/ },
  );
});

t.test('reads a HELLO, refuses versions and frame sizes it cannot use, and answers it', async (t) => {
  const items = { ...HELLO, 'engine-id': 'a' };
  t.strictSame(readFrame(hello(items)), { kind: 'hello', frameBytesMax: 16_380, isHealthCheck: false });
  t.match(readFrame(hello({ ...items, healthcheck: true })), { isHealthCheck: true });
  t.match(readFrame(hello({ ...items, 'supported-versions': '1.0, 2.0' })), { kind: 'hello' });
  const wrong: readonly (readonly [string, Item, number])[] = [
    ['supported-versions', '1.0', 8],
    ['supported-versions', null, 8],
    ['max-frame-size', 255, 9],
    ['max-frame-size', null, 9],
    ['max-frame-size', 'big', 9],
  ];
  for (const [name, value, status] of wrong)
    t.equal(
      problemOf(() => readFrame(hello({ ...items, [name]: value })))?.status,
      status,
      `${name}: ${value}`,
    );
  const written = Buffer.from(writeHello(16_380), 'latin1').subarray(4);
  const answer = { version: '2.0', 'max-frame-size': 16_380, capabilities: 'pipelining' };
  t.strictSame(written, frame(101, [0, 0], pairs(answer)));
});

t.test('refuses fragments, and recognizes other frames', async (t) => {
  t.match(readFrame(frame(2, [0, 0], Buffer.alloc(0))), { kind: 'disconnect' });
  t.match(readFrame(frame(77, [0, 0], Buffer.alloc(3))), { kind: 'unknown' });
  const one = notify([1, 1], { a: 'b' });
  t.equal(problemOf(() => readFrame(one.fill(0, 4, 5)))?.status, 10, 'the first fragment is refused');
  t.equal(problemOf(() => readFrame(frame(0, [1, 1], Buffer.alloc(0))))?.status, 10, 'a later one');
  const two = Buffer.concat([notify([1, 1], { a: 'b' }), text('more'), Buffer.from([0])]);
  t.match(readFrame(two), { kind: 'notify', args: null });
});

t.test('reads a list of headers, and refuses one that is cut', async (t) => {
  const long = 'x'.repeat(3000);
  const headers = headersBin([
    ['a', 'b'],
    ['empty', ''],
    ['long', long],
  ]).toString('latin1');
  t.strictSame(headersIn(headers), ['a', 'b', 'empty', '', 'long', long]);
  t.strictSame(headersIn('\0\x01x\x01a\x01b\0\0'), ['', 'x', 'a', 'b'], 'an empty name ends nothing');
  for (const end of [0, 1, 3, headers.length - 1])
    t.match(
      problemOf(() => headersIn(headers.slice(0, end))),
      { status: 4 },
      `cut at ${end}`,
    );
});

t.test('frames that are cut anywhere, and random bytes, cause no other error than a refusal', async (t) => {
  const args = { method: 'GET', uri: '/a', client: '192.0.2.1', headers: headersBin([['x-api-key', 'k']]) };
  for (const whole of [hello(), notify([300, 5], args)]) {
    let cut = 0;
    for (let end = 0; end < whole.length; end++)
      if (problemOf(() => readFrame(whole.subarray(0, end))) !== null) cut++;
    // A HELLO may end behind each of its items.
    t.ok(cut >= whole.length - 1, `${cut} of ${whole.length}`);
  }
  const random = seededRandom(7);
  const kinds = new Set<string>();
  for (let i = 0; i < 100_000; i++) {
    const bytes = random() < 0.5 ? hello() : notify([300, 5], args);
    for (let flips = 1 + random() * 4; flips > 0; flips--)
      bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
    let kind = 'error';
    const problem = problemOf(() => {
      kind = readFrame(bytes).kind;
    });
    kinds.add(problem === null ? kind : String(problem.status));
  }
  t.ok(kinds.size >= 7, [...kinds].join(' '));
});
