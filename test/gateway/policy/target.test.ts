import t from 'tap';
import { canonicalTarget, meaningOf, withoutSegmentParameters } from '#gateway/policy/target.ts';
import { fc } from '#test/support/fast-check.ts';

const RUNS = { numRuns: 400 };

/** Returns `PATH`, or `PATH/` if a trailing slash was sent, then `?query`. */
function canonical(raw: string): string {
  const target = canonicalTarget(raw);
  return target.ok
    ? `${target.path}${target.trailingSlash ? '/' : ''}${target.query}`
    : `400 ${target.reason}`;
}

t.test('every spelling of a path becomes one canonical path', async (t) => {
  const cases: readonly (readonly [raw: string, expected: string, why: string])[] = [
    ['/', '/', 'the root'],
    ['/a/b', '/a/b', 'a plain path stays'],
    ['/%61pi/v1/man%61gement', '/api/v1/management', 'encoded letters'],
    ['/%41%5A%7a%30%2D%5f%7E', '/AZz0-_~', 'every kind of unreserved character, hex in either case'],
    ['/a%2eb', '/a.b', 'an encoded dot inside a segment'],
    ['/a/%2e%2e/b', '/b', 'an encoded double dot'],
    ['/a/.%2E/b', '/b', 'a half encoded double dot'],
    ['/a/%2e/b', '/a/b', 'an encoded single dot'],
    ['/a/./b/../c', '/a/c', 'dot segments'],
    ['/../../a', '/a', 'nothing is above the root'],
    ['/..', '/', 'the root has no parent'],
    ['/a/..', '/', 'back to the root'],
    ['/a/b/..', '/a/', 'a trailing double dot names a collection'],
    ['/a/b/.', '/a/b/', 'a trailing dot too'],
    ['/...', '/...', 'three dots are a name'],
    ['/.well-known/x', '/.well-known/x', 'a dot may begin a name'],
    ['/a.', '/a.', 'a dot may end a name'],
    ['//a///b', '/a/b', 'repeated slashes'],
    ['//evil.com/path', '/evil.com/path', 'not an authority: a path with an empty segment'],
    ['//', '/', 'slashes only'],
    ['/a/', '/a/', 'one trailing slash is told apart from none'],
    ['/a//', '/a/', 'more of them are one'],
    ['/a%20b', '/a%20b', 'what is reserved stays encoded'],
    ['/a%c3%a9', '/a%C3%A9', 'in upper-case hex'],
    ['/a\xc3\xa9', '/a%C3%A9', 'raw bytes beyond ASCII are encoded'],
    ['/a%40b@', '/a%40b@', 'sub-delimiters go on as they came'],
    ['/100%25', '/100%25', 'an encoded percent sign that cannot be decoded again'],
    ['/100%25/x', '/100%25/x', 'nor here'],
    ['/a;b=c/d', '/a;b=c/d', 'segment parameters stay'],
    ['/a/..;/b', '/a/..;/b', 'a double dot with parameters is a name at first'],
    ['/"<>^`{|}', '/"<>^`{|}', 'characters that a strict client would encode'],
    ['http://host/a/../b', '/b', 'absolute form'],
    ['HTTPS://user@host:443/a?x', '/a?x', 'absolute form with everything'],
    ['http://host', '/', 'absolute form without a path'],
    ['http://host?x=/a', '/?x=/a', 'absolute form with a query only'],
    ['http://[::1]:80//a', '/a', 'absolute form with IPv6'],
  ];
  for (const [raw, expected, why] of cases) t.equal(canonical(raw), expected, `${why}: ${raw}`);
});

t.test('forwards the query unchanged', async (t) => {
  for (const query of ['?', '?a=b', '?a=%2F%00%2561', '?//../a', '?a?b', '?x=\xff', '?%', '?a=b;c', '?/']) {
    for (const path of ['/a', '/%61', '/', '/a/']) {
      const target = canonicalTarget(path + query);
      t.match(target, { ok: true, query }, path + query);
    }
  }
});

t.test('refuses paths that two servers could read differently, with the reason', async (t) => {
  const twice = 'percent-encoded twice';
  const control = 'encoded control character';
  const raw = 'contains a control character, a space, # or \\';
  const shape = 'must be a path';
  const hex = 'not followed by two hex digits';
  const cases: readonly (readonly [target: string, reason: string])[] = [
    ['/%2561', twice],
    ['/%252e%252e/a', twice],
    ['/%25%36%31', twice],
    ['/%25%36a', twice],
    ['/%256%31', twice],
    ['/%25252e', twice],
    ['/%252F', twice],
    ['/%255C', twice],
    ['/%2500', twice],
    ['/a%2Fb', 'encoded slash'],
    ['/a%2fb', 'encoded slash'],
    ['/a%5Cb', 'encoded backslash'],
    ['/a%5cb', 'encoded backslash'],
    ['/a%00', control],
    ['/a%0d%0ab', control],
    ['/a%1F', control],
    ['/a%7f', control],
    ['/a\x00', raw],
    ['/a\tb', raw],
    ['/a b', raw],
    ['/a\x7f', raw],
    ['/a\\b', raw],
    ['/..\\a', raw],
    ['/a#b', raw],
    ['/a?b#c', raw],
    ['/a?b c', raw],
    ['/a?\\', raw],
    ['/a?\r\n', raw],
    ['/%61?b#c', raw],
    ['/a\u0100', raw],
    ['/a?\u2028', raw],
    ['/%', hex],
    ['/%4', hex],
    ['/%zz', hex],
    ['/%u0061', hex],
    ['/%%36%31', hex],
    ['/% 1', raw],
    ['', shape],
    ['*', shape],
    ['a/b', shape],
    ['?a', shape],
    ['host:443', shape],
    ['http:/a', shape],
    ['http:///a', shape],
    ['http://', shape],
    ['http://?a', shape],
    ['ftp://host/a', shape],
    ['javascript:alert(1)', shape],
    [' /a', shape],
    ['\\a', shape],
    ['http://host\\a', raw],
    ['http://host#a', raw],
    ['http://host/%2561', twice],
  ];
  for (const [target, reason] of cases) {
    t.match(canonicalTarget(target), { ok: false, reason }, encodeURIComponent(target));
  }
});

t.test('also reads a path as a server that strips segment parameters does', async (t) => {
  const cases: readonly (readonly [path: string, stripped: string | null])[] = [
    ['/a/b', null],
    ['/a;b=c/d', '/a/d'],
    ['/a;b;c=d', '/a'],
    ['/a%3Bb/c', '/a/c'],
    ['/a/..;/b', '/b'],
    ['/a/..;x=y/b', '/b'],
    ['/a/.;/b', '/a/b'],
    ['/;/a', '/a'],
    ['/;', '/'],
    ['/a/b;', '/a/b'],
    ['/..;/..;/a', '/a'],
  ];
  for (const [path, stripped] of cases) t.equal(withoutSegmentParameters(path), stripped, path);
});

t.test('two spellings of a segment are equal exactly if they decode to the same bytes', async (t) => {
  t.equal(meaningOf('%40me'), meaningOf('@me'));
  t.equal(meaningOf('a%20%C3%A9'), 'a \xc3\xa9');
  t.equal(meaningOf('%25'), '%');
  t.equal(meaningOf('plain'), 'plain');
  t.not(meaningOf('%20'), meaningOf('+'));
});

/** Strings of the bytes that matter here. They collide far more often than arbitrary ones. */
const hostile = fc
  .array(
    fc.constantFrom(
      ...['/', '//', '.', '..', ';', '%2e', '%2E', '%2f', '%5c', '%00', '%25', '%3B', '%61', '61', '2e', '%'],
      ...['a', 'B', '?', '#', '\\', ' ', '\xe9', '%C3', '%c3', '@', '%40', 'http://h', ':'],
    ),
    { maxLength: 14 },
  )
  .map((parts) => parts.join(''));
const latin1 = fc
  .array(fc.integer({ min: 0, max: 255 }), { maxLength: 40 })
  .map((codes) => String.fromCharCode(...codes));
const target = fc.oneof(hostile, latin1).chain((text) => fc.constantFrom(text, `/${text}`));

t.test('never throws, whatever the bytes', async () => {
  fc.assert(
    fc.property(target, (raw) => typeof canonicalTarget(raw).ok === 'boolean'),
    RUNS,
  );
});

t.test('canonicalizing twice changes nothing, for both readings', async () => {
  fc.assert(
    fc.property(target, (raw) => {
      const once = canonicalTarget(raw);
      if (!once.ok) return;
      for (const path of [once.path, withoutSegmentParameters(once.path) ?? once.path]) {
        const twice = canonicalTarget(path);
        if (!twice.ok || twice.path !== path || twice.trailingSlash)
          throw new Error(`${path} -> ${JSON.stringify(twice)}`);
      }
    }),
    RUNS,
  );
});

t.test(
  'a canonical path has no empty or dot segment, no trailing slash, and nothing left to decode',
  async () => {
    fc.assert(
      fc.property(target, (raw) => {
        const result = canonicalTarget(raw);
        if (!result.ok) return;
        for (const path of [result.path, withoutSegmentParameters(result.path) ?? result.path]) {
          if (!/^\/[!-~]*$/.test(path) || /\/\/|\/\.{1,2}(?:\/|$)|.\/$|[?#\\]/.test(path))
            throw new Error(path);
          for (const [encoded] of path.matchAll(/%.{0,2}/g)) {
            const byte = meaningOf(encoded);
            if (byte.length !== 1 || byte < ' ' || byte === '\x7f' || /[\w\-.~/\\]/.test(byte))
              throw new Error(`${encoded} in ${path}`);
          }
        }
      }),
      RUNS,
    );
  },
);

t.test('the fast and the slow parser agree', async () => {
  const plain = fc
    .array(fc.constantFrom('/', 'a', 'b.c', '.', '..', ';', '~', '@', '-'), { maxLength: 10 })
    .map((parts) => `/${parts.join('')}`);
  fc.assert(
    fc.property(plain, fc.constantFrom('', '?', '?q=/../x'), (path, query) => {
      // An encoded letter in a segment of its own sends the same path through the slow parser, one segment deeper.
      const fast = canonicalTarget(path + query);
      const slow = canonicalTarget(`/%7a${path}${query}`);
      if (!fast.ok || !slow.ok) throw new Error(`${path} is refused`);
      if (path.split('/').includes('..')) return;
      const expected = fast.path === '/' ? '/z' : `/z${fast.path}`;
      if (slow.path !== expected || slow.query !== fast.query) throw new Error(`${path}: ${slow.path}`);
      if (fast.path !== '/' && slow.trailingSlash !== fast.trailingSlash)
        throw new Error(`${path}: trailing slash`);
    }),
    RUNS,
  );
});

t.test('the work grows linearly with the length of the target', async (t) => {
  // The parser accepts 16 KiB. A target 64 times as long must still be handled quickly.
  for (const unit of ['/..', '%2e', '/', ';', '/a;b', '%3B', '/%61', 'http://']) {
    const raw = `/${unit.repeat(Math.ceil(1_000_000 / unit.length))}`;
    const result = canonicalTarget(raw);
    t.ok(!result.ok || withoutSegmentParameters(result.path) !== '', unit);
  }
});
