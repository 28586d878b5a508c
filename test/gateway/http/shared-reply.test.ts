/** A shared reply is checked once, and differs only by its id. */
import t from 'tap';
import { SharedReply } from '#gateway/http/shared-reply.ts';

const GAP = '~~~~';
const BODY = `{"id":"${GAP}"}`;
const LENGTH = ['Content-Length', String(BODY.length)];

const shared = (): SharedReply => new SharedReply(429, ['Id', GAP, ...LENGTH], BODY, GAP);

t.test('fields are shared only if each can be written, and one is the length of the body', async (t) => {
  for (const headers of [
    ['A', 'b\r\nC: d'],
    ['A b', 'c'],
    ['', 'c'],
    ['A', '\0'],
    ['A', '\u{1f642}'],
  ])
    t.throws(() => new SharedReply(429, [...LENGTH, ...headers], BODY, GAP), /cannot be written/);
  t.throws(() => new SharedReply(429, ['A', 'b'], BODY, GAP), /Content-Length/);
  t.throws(() => new SharedReply(429, LENGTH, `${BODY} `, GAP), /Content-Length/);
});

t.test('the id stands in each gap, and has to fit', async (t) => {
  const text = shared().textWith('id-1', 'timeout=5', 'today');
  t.equal(
    text,
    'HTTP/1.1 429 Too Many Requests\r\nId: id-1\r\nContent-Length: 13\r\nConnection: keep-alive\r\n' +
      'Keep-Alive: timeout=5\r\nDate: today\r\n\r\n{"id":"id-1"}',
  );
  t.throws(() => shared().textWith('id', 'timeout=5', 'today'), /as long as its gap/);
});
