import t from 'tap';
import { ApiError } from '#api/errors.ts';
import { parseJsonBody } from '#api/http/request-body.ts';

t.equal(parseJsonBody(Buffer.alloc(0)), undefined, 'an empty body has no value');
t.strictSame(parseJsonBody(Buffer.from('{"a":[1,"ü",null]}')), { a: [1, 'ü', null] });
t.equal(parseJsonBody(Buffer.from('\ufeff1')), 1, 'a byte order mark is skipped');

const members = '{"constructor":{"prototype":1}}';
t.equal(JSON.stringify(parseJsonBody(Buffer.from(members))), members, 'a label may be "constructor"');

const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);
t.ok(parseJsonBody(Buffer.from(nested(100))));

for (const text of ['{"a":', '1 2']) {
  t.throws(() => parseJsonBody(Buffer.from(text)), { message: /^Malformed JSON/, constructor: ApiError });
}

const refused: Readonly<Record<string, Buffer | string>> = {
  'text that is not UTF-8': Buffer.from([0x22, 0xff, 0x22]),
  '__proto__ as a key': '{"a":{"__proto__":{"x":1}}}',
  'an escaped __proto__': '{"\\u005f_proto__":1}',
  'NUL in a value': '{"a":"x\\u0000"}',
  'NUL in a key': '{"\\u0000":1}',
  'half a surrogate pair': '["\\ud800"]',
  'half a surrogate pair in a key': '{"\\udc00":1}',
  'nesting that is too deep': nested(101),
  'nesting that would overflow the stack': nested(500_000),
};
for (const [name, body] of Object.entries(refused)) {
  t.test(`refuses ${name}, and says why`, async (t) => {
    t.throws(() => parseJsonBody(Buffer.from(body)), { code: 'bad_request', message: /^The (body|key) / });
  });
}

t.test('refuses more distinct keys than the bound, which would block the process', async (t) => {
  const withKeys = (count: number): Buffer =>
    Buffer.from(
      JSON.stringify({ data: Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 0])) }),
    );
  t.match(parseJsonBody(withKeys(9_999)), { data: { k9998: 0 } }, '10,000 keys, with data');
  t.throws(() => parseJsonBody(withKeys(10_000)), {
    code: 'bad_request',
    message: 'The body has more than 10000 different keys',
  });
});

t.test('refuses more values than the bound, before parsing', async (t) => {
  const zeros = (count: number): string => Array.from({ length: count }, () => '0').join(',');
  t.equal((parseJsonBody(Buffer.from(`[${zeros(100_000)}]`)) as unknown[]).length, 100_000);
  const refusal = { code: 'bad_request', message: 'The body has more than 100000 values' };
  t.throws(() => parseJsonBody(Buffer.from(`[${zeros(100_002)}`)), refusal, 'its end does not matter');
});

t.test('quotes, commas and colons in texts are none of JSON', async (t) => {
  const text = ',"\\":'.repeat(150_000);
  const body = JSON.stringify({ [text]: text });
  t.equal(JSON.stringify(parseJsonBody(Buffer.from(body))), body);
  for (const broken of ['"', '"\\', ']}]', '{{{{', ':::', '{"a":"\\"']) {
    t.throws(() => parseJsonBody(Buffer.from(broken)), { message: /^Malformed JSON/ }, broken);
  }
});
