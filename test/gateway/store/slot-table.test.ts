import t from 'tap';
import { redirectionOf, slotRanges } from '#gateway/store/slot-table.ts';

t.test('CLUSTER SLOTS: the first node of a range is its primary', async (t) => {
  const reply = [
    [0, 5460, ['10.0.0.1', 7000, 'id', []], ['10.0.0.2', 7001, 'id']],
    [5461, 16_383, ['', 7002, 'id']],
  ];
  t.strictSame(slotRanges(reply, 'asked'), [
    { first: 0, last: 5460, primary: { host: '10.0.0.1', port: 7000 } },
    { first: 5461, last: 16_383, primary: { host: 'asked', port: 7002 } },
  ]);
});

t.test('ignores malformed entries', async (t) => {
  for (const reply of [
    null,
    'OK',
    [],
    [1],
    [[0, 1]],
    [[0, 16_384, ['h', 1]]],
    [[-1, 1, ['h', 1]]],
    [[0, 1, ['h', 0]]],
  ])
    t.strictSame(slotRanges(reply, 'asked'), [], JSON.stringify(reply));
});

t.test('reads MOVED and ASK, and ignores other errors', async (t) => {
  t.strictSame(redirectionOf('MOVED 12 h:7000', 'asked'), {
    kind: 'moved',
    slot: 12,
    endpoint: { host: 'h', port: 7000 },
  });
  t.strictSame(redirectionOf('ASK 16383 ::1:7000', 'asked'), {
    kind: 'asking',
    slot: 16_383,
    endpoint: { host: '::1', port: 7000 },
  });
  t.equal(redirectionOf('MOVED 12 :7000', 'asked')?.endpoint.host, 'asked');
  for (const other of [
    '',
    'ERR MOVED 12 h:1',
    'MOVED',
    'MOVED 16384 h:1',
    'MOVED x h:1',
    'ASK 1 h:0',
    'ASK 1 h',
  ])
    t.equal(redirectionOf(other, 'asked'), null, other);
});
