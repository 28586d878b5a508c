import t from 'tap';
import { meaningOf, readTarget } from '#gateway/policy/target.ts';
import { fc } from '#test/support/fast-check.ts';
import { oddPath } from '#test/support/odd-paths.ts';
import { SERVERS } from './path-servers.ts';

const RUNS = { numRuns: 400 };

type Target = Extract<ReturnType<typeof readTarget>, { ok: true }>;

/** @throws if the target is refused */
function targetOf(raw: string): Target {
  const target = readTarget(raw);
  if (!target.ok) throw new Error(`${raw}: ${target.reason}`);
  return target;
}

t.test('every spelling of a path has one plain reading', async (t) => {
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
    ['/a/b/..', '/a', 'a double dot at the end'],
    ['/a/b/.', '/a/b', 'a dot at the end'],
    ['/...', '/...', 'three dots are a name'],
    ['/.well-known/x', '/.well-known/x', 'a dot may begin a name'],
    ['/a.', '/a.', 'a dot may end a name'],
    ['//a///b', '/a/b', 'repeated slashes'],
    ['/a//../b', '/b', 'a double dot behind an empty segment'],
    ['//evil.com/path', '/evil.com/path', 'not an authority: a path with an empty segment'],
    ['//', '/', 'slashes only'],
    ['/a/', '/a', 'a slash at the end'],
    ['/a//', '/a', 'more of them'],
    ['/a%20b', '/a%20b', 'what is reserved stays encoded'],
    ['/a%c3%a9', '/a%C3%A9', 'in upper-case hex'],
    ['/a\xc3\xa9', '/a%C3%A9', 'raw bytes beyond ASCII are encoded'],
    ['/a%40b@', '/a%40b@', 'sub-delimiters stay'],
    ['/100%25', '/100%25', 'an encoded percent sign'],
    ['/50%25de.txt', '/50%25de.txt', 'also before what could be hex digits'],
    ['/%25%36%31', '/%2561', 'decoded once'],
    ['/@scope%2fname', '/@scope%2Fname', 'an encoded slash stays'],
    ['/a%5cb', '/a%5Cb', 'an encoded backslash too'],
    ['/a;b=c/d', '/a;b=c/d', 'segment parameters stay'],
    ['/a/..;/b', '/a/..;/b', 'a double dot with parameters is a name'],
    ['/"<>^`{|}', '/"<>^`{|}', 'characters that a strict client would encode'],
    ['http://host/a/../b', '/b', 'absolute form'],
    ['HTTPS://user@host:443/a?x', '/a', 'absolute form with everything'],
    ['http://host', '/', 'absolute form without a path'],
    ['http://host?x=/a', '/', 'absolute form with a query only'],
    ['http://[::1]:80//a', '/a', 'absolute form with IPv6'],
  ];
  for (const [raw, expected, why] of cases) t.equal(targetOf(raw).path, expected, `${why}: ${raw}`);
});

t.test('forwards what was sent, and resolves only dot segments', async (t) => {
  const same = [
    '/',
    '/a/',
    '/a//b',
    '//',
    '/%7E/%6d/%7e',
    '/a%2fb%5C;x=y/50%25de.txt',
    '/..;/a/..%2F',
    '/a?x=../\\&%zz#'.slice(0, -1),
    '/?',
    '/a/?a=%2F%00%2561',
    '/a?/../',
    '/a?a?b',
    '/.a/b./...',
  ];
  for (const raw of same) t.equal(targetOf(raw).forwarded, raw, raw);
  const cases: readonly (readonly [raw: string, forwarded: string])[] = [
    ['/a/../b', '/b'],
    ['/%61/./b//c/?q=%61/../', '/%61/b//c/?q=%61/../'],
    ['/a/%2e%2E/b/', '/b/'],
    ['/a/b/..', '/a/'],
    ['/a/b/.', '/a/b/'],
    ['/a/./', '/a/'],
    ['/..', '/'],
    ['/.?x', '/?x'],
    ['/a//../b', '/b'],
    ['//../a', '/a'],
    ['/a//./b', '/a//b'],
    ['/a;x/../b', '/b'],
    ['http://host/a/?x', '/a/?x'],
    ['http://host?x', '/?x'],
    ['/caf\xc3\xa9/?q=\xff', '/caf%C3%A9/?q=%FF'],
    ['/a?q=\xe9', '/a?q=%E9'],
  ];
  for (const [raw, forwarded] of cases) t.equal(targetOf(raw).forwarded, forwarded, raw);
});

t.test('refuses what no server should get, with the reason', async (t) => {
  const control = 'encoded control character';
  const twice = 'control character that is encoded twice';
  const raw = 'contains a control character, a space or #';
  const backslash = 'a backslash';
  const shape = 'must be a path';
  const hex = 'not followed by two hex digits';
  const cases: readonly (readonly [target: string, reason: string])[] = [
    ['/%2500', twice],
    ['/%250a', twice],
    ['/%25%30%30', twice],
    ['/a;%257f', twice],
    ['/a%00', control],
    ['/a%0d%0ab', control],
    ['/a%1F', control],
    ['/a%7f', control],
    ['/a%00/../b', control],
    ['/a\x00', raw],
    ['/a\tb', raw],
    ['/a b', raw],
    ['/a\x7f', raw],
    ['/a\\b', backslash],
    ['/..\\a', backslash],
    ['/a#b', raw],
    ['/a?b#c', raw],
    ['/a?b c', raw],
    ['/a?\r\n', raw],
    ['/%61?b#c', raw],
    ['/a\u0100', raw],
    ['/a?\u2028', raw],
    ['/%', hex],
    ['/%4', hex],
    ['/%zz', hex],
    ['/%zz/../a', hex],
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
    ['http://host\\a', backslash],
    ['http://host#a', raw],
    ['http://host/%2500', twice],
  ];
  for (const [target, reason] of cases) {
    t.match(readTarget(target), { ok: false, reason }, encodeURIComponent(target));
  }
});

t.test('has a further reading for each way in which servers read the path', async (t) => {
  const cases: readonly (readonly [raw: string, others: readonly string[]])[] = [
    ['/a/b', []],
    ['/a/../b/', []],
    ['/100%25/%3F', []],
    ['/@scope%2fname', ['/@scope/name']],
    ['/a%5Cb', ['/a/b']],
    ['/50%25de.txt', ['/50%DE.txt']],
    ['/%2561', ['/a']],
    ['/a//b', ['/a//b']],
    ['/a;b=c/d', ['/a/d']],
    ['/a;b;c=d', ['/a']],
    ['/a%3Bb/c', ['/a/c']],
    ['/a/..;/b', ['/a/../b', '/b']],
    ['/a/..;x=y/b', ['/a/../b', '/b']],
    ['/;/a', ['/', '/a', '//a']],
    ['//x/a', ['/a', '//x/a']],
    ['//x', ['/', '//x']],
    ['//x//a', ['/a', '//a', '//x//a']],
    ['/;', ['/']],
    ['/a/..%2fb', ['/a/../b', '/b']],
    ['/a/%2e%2e%5cb', ['/a/../b', '/b']],
    ['/a/%252e%252e%252fb', ['/a/../b', '/b', '/a/..%2Fb']],
    ['/a//..%2Fb', ['/a/b', '/b', '/a//../b', '/a/../b', '/a//..%2Fb']],
    ['/a//../b', ['/a/b', '/a//../b', '/a/../b']],
    ['/p%2Fq;x%2F..', ['/p%2Fq', '/p/q', '/p', '/p/q;x/..', '/p/q/..']],
    ['/api/queues/%2F/q', ['/api/queues/q', '/api/queues///q']],
  ];
  for (const [raw, others] of cases) t.strictSame([...targetOf(raw).others].sort(), [...others].sort(), raw);
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
    fc.property(target, (raw) => typeof readTarget(raw).ok === 'boolean'),
    RUNS,
  );
});

t.test('forwards byte for byte, where there is no dot segment and no byte beyond ASCII', async (t) => {
  let compared = 0;
  fc.assert(
    fc.property(fc.oneof(target, oddPath), (raw) => {
      const result = readTarget(raw);
      if (!result.ok || !raw.startsWith('/') || /[\x80-\xff]/.test(raw)) return;
      const [path = ''] = raw.split('?', 1);
      if (path.split('/').some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment))) return;
      compared++;
      if (result.forwarded !== raw) throw new Error(`${raw} is forwarded as ${result.forwarded}`);
    }),
    RUNS,
  );
  t.ok(compared > 50, `${compared} targets were compared`);
});

t.test('what is forwarded has the same readings, and no dot segment', async () => {
  fc.assert(
    fc.property(fc.oneof(target, oddPath), (raw) => {
      const first = readTarget(raw);
      if (!first.ok) return;
      const again = targetOf(first.forwarded);
      if (again.forwarded !== first.forwarded || again.path !== first.path)
        throw new Error(`${raw} -> ${JSON.stringify([first, again])}`);
      const known = new Set([first.path, ...first.others]);
      for (const reading of again.others) if (!known.has(reading)) throw new Error(`${raw}: no ${reading}`);
    }),
    RUNS,
  );
});

t.test('the readings have what each kind of server reads', async (t) => {
  let different = 0;
  const segmentsOf = (reading: string): string => JSON.stringify(reading.slice(1).split('/').map(meaningOf));
  fc.assert(
    fc.property(oddPath, (raw) => {
      const result = readTarget(raw);
      if (!result.ok) return;
      const readings = new Set([result.path, ...result.others].map(segmentsOf));
      if (result.others.length > 0) different++;
      for (const [name, serverReads] of Object.entries(SERVERS)) {
        const read = JSON.stringify(serverReads(result.forwarded));
        if (!readings.has(read))
          throw new Error(`${name} reads ${raw} as ${read}, not ${[...readings].join(' ')}`);
      }
    }),
    { numRuns: 2000 },
  );
  t.ok(different > 200, `${different} paths had several readings`);
});

t.test('the plain reading of the plain reading is the same', async () => {
  fc.assert(
    fc.property(fc.oneof(target, oddPath), (raw) => {
      const once = readTarget(raw);
      if (once.ok && targetOf(once.path).path !== once.path) throw new Error(`${raw} -> ${once.path}`);
    }),
    RUNS,
  );
});

t.test(
  'a plain reading has no empty or dot segment, no slash at its end, and nothing left to decode',
  async () => {
    fc.assert(
      fc.property(fc.oneof(target, oddPath), (raw) => {
        const result = readTarget(raw);
        if (!result.ok) return;
        const { path } = result;
        if (!/^\/[!-~]*$/.test(path) || /\/\/|\/\.{1,2}(?:\/|$)|.\/$|[?#\\]/.test(path))
          throw new Error(path);
        for (const [encoded] of path.matchAll(/%.{0,2}/g)) {
          const byte = meaningOf(encoded);
          if (byte.length !== 1 || byte < ' ' || byte === '\x7f' || /[\w\-.~]/.test(byte))
            throw new Error(`${encoded} in ${path}`);
        }
      }),
      RUNS,
    );
  },
);

t.test('the fast and the slow parser agree', async () => {
  const plain = fc
    .array(fc.constantFrom('/', 'a', 'b.c', '.', '..', '~', '@', '-'), { maxLength: 10 })
    .map((parts) => `/${parts.join('')}`);
  fc.assert(
    fc.property(plain, fc.constantFrom('', '?', '?q=/../x'), (path, query) => {
      // An encoded letter in a segment of its own sends the same path through the slow parser, one segment deeper.
      const fast = targetOf(path + query);
      const slow = targetOf(`/%7a${path}${query}`);
      if (path.split('/').includes('..')) return;
      const expected = fast.path === '/' ? '/z' : `/z${fast.path}`;
      if (slow.path !== expected || slow.forwarded !== `/%7a${fast.forwarded}`)
        throw new Error(`${path}: ${JSON.stringify(slow)}`);
    }),
    RUNS,
  );
});

t.test('the readings are few, and a long path has none that servers take differently', async (t) => {
  const everything = '/a;x%2f..%5c%252e%252e%255c//../%253b.%2F;%252F';
  const differing = ['/', ';', '/a;b', '%3B', '%2f..', '%252f', everything];
  for (const unit of [...differing, '/..', '%2e', '/%61', 'http://']) {
    const pathOf = (length: number): string =>
      (unit.startsWith('/') ? '' : '/') + unit.repeat(Math.ceil(length / unit.length));
    const short = readTarget(pathOf(2000).slice(0, 2047).replace(/%.?$/, ''));
    t.ok(short.ok && short.others.length < 256, unit);
    // The parser accepts 64 KiB. A target many times as long must still be handled.
    const long = readTarget(pathOf(1_000_000));
    if (differing.includes(unit) || unit === 'http://')
      t.match(long, { ok: false, reason: /longer than 2048 bytes/ }, unit);
    else t.ok(long.ok, unit);
  }
});
