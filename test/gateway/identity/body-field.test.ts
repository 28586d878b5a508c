/**
 * Tests fields of ordinary bodies, and clients that try to present different values to the gateway and to the
 * application.
 */

import { join } from 'node:path';
import t from 'tap';
import { announcedBody, BODY_BYTES_MAX, fieldOf, type SentBody } from '#gateway/identity/body-field.ts';
import { anyText } from '#test/support/any-text.ts';
import { arrowCases } from '#test/support/arrow-cases.ts';
import { fc } from '#test/support/fast-check.ts';

const json = (text: string | Buffer): SentBody => ({ kind: 'json', bytes: Buffer.from(text) });
const form = (text: string | Buffer): SentBody => ({ kind: 'form', bytes: Buffer.from(text) });

function read(body: SentBody, target = '/login', field = 'email'): string | null {
  const found = fieldOf(body, target, field);
  return found.kind === 'value' ? found.value : `400: ${found.reason}`;
}

const small = { hasBody: true, contentLength: 10, nominated: null as ReadonlySet<string> | null };
const kindOf = (type: string, length = small, more: string[] = []): string => {
  const announced = announcedBody(['Host', 'a', 'Content-Type', type, ...more], length);
  return announced.kind === 'announced' ? announced.format : announced.kind;
};

for (const { heading, cases } of arrowCases(join(import.meta.dirname, 'fields.md'))) {
  t.test(heading, async (t) => {
    for (const [sent = '', expected] of cases) {
      const ofBody = () => read(heading.startsWith('JSON') ? json(sent) : form(sent)) ?? 'none';
      t.equal(heading === 'Content-Type' ? kindOf(sent) : ofBody(), expected, JSON.stringify(sent));
    }
  });
}

t.test(
  'refuses JSON with a second value of names that fold to the same, and JSON that is not UTF-8',
  async (t) => {
    for (const [text, field] of [
      ['{"key":"b","\u212aEY":"a"}', 'key'],
      ['{"user":"b","u\u017fer":"a"}', 'user'],
    ] as const)
      t.match(
        read(json(text), '/login', field),
        `400: the request presents two different values of ${field}`,
      );
    t.equal(read(json(Buffer.from('{"email":"a"}', 'utf16le'))), '400: the body is not valid JSON');
    t.equal(read(json(Buffer.from('{"email":"\xe9"}', 'latin1'))), '400: the body is not valid UTF-8');
  },
);

t.test('400: a name that some applications read as the field', async (t) => {
  const odd = '400: the name of a field may be read as email; send email as a single value';
  const names =
    '[email] %5Bemail%5D [email email] []email [email]x [email][x] [email];x [[email]] email[] email%5b0%5d Email[x] email[ em[ail +email email+ %20email %09email e+mail .email email. e.mail email%00 email%00x EMAIL%00 ?email [%65mail] .[email.]%00.';
  for (const name of names.split(' ')) {
    t.equal(read(form(`${name}=a`)), odd, name);
    t.equal(read(form(`email=a&${name}=a`)), odd, `${name} behind the field`);
    t.equal(read(form('email=a'), `/login?${name}=a`), odd, `${name} in the query`);
  }
  for (const name of ['[email]', 'email[]', ' email', 'email.', 'email\u0000', 'EMAIL\u0000x'])
    t.equal(read(json(JSON.stringify({ email: 'a', [name]: 'a' }))), odd, JSON.stringify(name));
  const proto = '400: the body has a member __proto__; remove it';
  t.equal(read(json('{"__proto__":{"email":"a"}}')), proto);
  t.equal(read(json('{"\\u005f_proto__":{"email":"a"}}'), '/login?email=b'), proto);
  t.equal(read(form('user.name=a'), '/login', 'user_name'), odd.replaceAll('email', 'user_name'));
  for (const other of ['user.name', 'user[name]', 'username'])
    t.equal(read(form(`${other}=b&user=a`), '/login', 'user_id'), null, other);
});

t.test('reads the field from the query too, and refuses another value there', async (t) => {
  t.equal(read({ kind: 'absent' }, '/login?email=a'), 'a');
  t.equal(read({ kind: 'unread', reason: 'it is too large' }, '/login?email=a'), 'a');
  t.equal(read(json('{"email":"a"}'), '/login?x=1'), 'a');
  t.equal(read(json('{"email":"a"}'), '/login?email=A'), 'a');
  t.match(read(json('{"email":"a"}'), '/login?email=b'), /^400: .* two different values/);
  t.match(read(form('email=a'), '/login?email=b'), /^400: .* two different values/);
  t.match(read(form('email=a'), '/login?email[]=b'), /^400: /);
});

t.test('counts spellings as one account that databases treat as the same', async (t) => {
  for (const blank of ['\u200b', ' '])
    t.equal(read(json(`{"email":"${blank.repeat(1020)}admin@example.org"}`)), 'admin@example.org');
  t.equal(read(json('{"email":"stra\u00dfe"}')), read(json('{"email":"STRASSE"}')));
  t.equal(read(json('{"email":"\u039f\u03a3"}')), read(json('{"email":"\u03bf\u03c3"}')));
});

t.test('folds letters and digits that the usual collation treats as ASCII', async (t) => {
  const { compare } = new Intl.Collator('und', { sensitivity: 'base' });
  const ascii = [...'0123456789abcdefghijklmnopqrstuvwxyz', 'ae', 'oe', 'ss', 'dz', 'th'].sort(compare);
  /** @returns the text of ASCII that means the same; null if there is none */
  const twinOf = (char: string): string | null => {
    let [from, to] = [0, ascii.length];
    while (from < to) {
      const middle = Math.floor((from + to) / 2);
      const order = compare(char, ascii[middle] ?? '');
      if (order === 0) return ascii[middle] ?? null;
      if (order < 0) to = middle;
      else from = middle + 1;
    }
    return null;
  };
  const wrong: string[] = [];
  for (let point = 0x80; point < 0x20000; point++) {
    const char = String.fromCodePoint(point);
    if (!/\p{Assigned}/u.test(char) || /\p{Cs}/u.test(char)) continue;
    const twin = compare(`a${char}`, 'a') === 0 ? '' : twinOf(char);
    if (twin === null) continue;
    const value = read(json(JSON.stringify({ email: `x${char}y` })));
    if (value !== `x${twin}y`) wrong.push(`U+${point.toString(16)} ${value}, not x${twin}y`);
  }
  t.strictSame(wrong, []);
});

t.test('reads a small body without a coding, and with one type', async (t) => {
  t.equal(kindOf(`application/json${'; \t'.repeat(4000)}x`), 'malformed');
  t.equal(kindOf(`application/json${'; x="y"'.repeat(2000)};`), 'json');
  t.equal(announcedBody([], small).kind, 'unread', 'a body without a type is not read');
  t.equal(announcedBody([], { ...small, hasBody: false, contentLength: null }).kind, 'absent');
  t.equal(kindOf('application/json', { ...small, contentLength: BODY_BYTES_MAX }), 'json');
  t.equal(kindOf('application/json', { ...small, contentLength: BODY_BYTES_MAX + 1 }), 'unread');
  t.equal(kindOf('application/json', small, ['content-encoding', 'gzip']), 'unread');
  t.equal(kindOf('application/json', small, ['content-encoding', 'identity']), 'json');
  t.equal(kindOf('application/json', small, ['content-type', 'application/json']), 'malformed');
  t.equal(kindOf('application/json', { ...small, nominated: new Set(['content-type']) }), 'malformed');
});

t.test('400: more fields than some applications read', async (t) => {
  const many = '400: the query or the form has more than 1000 fields';
  t.equal(read(form(`${'x&'.repeat(999)}email=a`)), 'a');
  t.equal(read(form(`${'x&'.repeat(1000)}email=a`)), many);
  t.equal(read(form('&'.repeat(BODY_BYTES_MAX))), null);
  t.equal(read(json('{"email":"a"}'), `/login?${'x=1&'.repeat(1001)}`), many);
});

t.test('reads the deepest JSON and the longest string', async (t) => {
  const half = BODY_BYTES_MAX / 2 - 10;
  t.equal(read(json(`{"email":"a","x":${'['.repeat(half)}${']'.repeat(half)}}`)), 'a');
  t.equal(read(json(`{"x":"${'\\"'.repeat(half - 5)}","email":"a"}`)), 'a');
});

t.test('compares long values by their beginning', async (t) => {
  const long = 'a'.repeat(1024);
  t.equal(read(json(`{"email":"${long}b"}`)), read(form(`email=${long}c`)));
  t.not(read(json(`{"email":"${long.slice(1)}b"}`)), read(form(`email=${long.slice(1)}c`)));
});

t.test('reads the field of random bodies, and refuses a second value', async (t) => {
  const other = anyText().filter(
    (name) => name.toUpperCase().toLowerCase() !== 'email' && name !== '__proto__',
  );
  const word = fc.stringMatching(/^[a-z0-9@.+_-]{1,20}$/);
  const rest = fc.dictionary(other, fc.jsonValue(), { maxKeys: 5 });

  fc.assert(
    fc.property(rest, rest, word, fc.constantFrom(0, 1, 4), (before, after, email, space) => {
      const text = JSON.stringify({ ...before, email, ...after }, null, space);
      t.equal(read(json(text)), email, text);
      const twice = `{"email":${JSON.stringify(`${email}x`)},${text.slice(text.indexOf('{') + 1)}`;
      t.match(read(json(twice)), /^400: .* two different values/, twice);
    }),
  );
  fc.assert(
    fc.property(anyText({ minLength: 1 }), (email) => {
      const inForm = read(form(new URLSearchParams({ email }).toString()));
      t.equal(inForm, read(json(JSON.stringify({ email }))), 'a form and JSON give the same identity');
    }),
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), anyText({ maxLength: 20 }), (bytes, query) => {
      for (const body of [json(Buffer.from(bytes)), form(Buffer.from(bytes))])
        t.match(
          fieldOf(body, `/?${Buffer.from(query).toString('latin1')}`, 'email').kind,
          /^(value|malformed)$/,
        );
    }),
  );
});
