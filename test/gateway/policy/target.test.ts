import { join } from 'node:path';
import t from 'tap';
import { meaningOf, readTarget } from '#gateway/policy/target.ts';
import { arrowCases } from '#test/support/arrow-cases.ts';
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

for (const { heading, cases } of arrowCases(join(import.meta.dirname, 'targets.md'))) {
  t.test(heading, async (t) => {
    for (const [sent = '', forwarded, readings] of cases) {
      const target = readTarget(sent);
      const found = target.ok
        ? [target.forwarded, [target.path, ...target.others.toSorted()].join(' ')]
        : [`400 ${target.reason}`, undefined];
      t.strictSame([forwarded, readings], found, encodeURIComponent(sent));
    }
  });
}

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

t.test('whatever the bytes: what is forwarded, and what its plain reading is', async (t) => {
  let compared = 0;
  fc.assert(
    fc.property(fc.oneof(target, oddPath), (raw) => {
      const first = readTarget(raw);
      if (!first.ok) return;
      const [sent = ''] = raw.split('?', 1);
      const hasDots = sent.split('/').some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment));
      if (raw.startsWith('/') && !/[\x80-\xff]/.test(raw) && !hasDots) {
        compared++;
        if (first.forwarded !== raw) throw new Error(`${raw} is forwarded as ${first.forwarded}`);
      }
      const again = targetOf(first.forwarded);
      if (again.forwarded !== first.forwarded || again.path !== first.path)
        throw new Error(`${raw} -> ${JSON.stringify([first, again])}`);
      const known = new Set([first.path, ...first.others]);
      for (const reading of again.others) if (!known.has(reading)) throw new Error(`${raw}: no ${reading}`);
      assertPlain(first.path);
    }),
    { numRuns: 1000 },
  );
  t.ok(compared > 50, `${compared} targets were compared`);
});

/** A plain reading has no empty or dot segment, no slash at its end, and nothing left to decode. */
function assertPlain(path: string): void {
  if (targetOf(path).path !== path) throw new Error(`the plain reading of ${path} is another`);
  if (!/^\/[!-~]*$/.test(path) || /\/\/|\/\.{1,2}(?:\/|$)|.\/$|[?#\\]/.test(path)) throw new Error(path);
  for (const [encoded] of path.matchAll(/%.{0,2}/g)) {
    const byte = meaningOf(encoded);
    if (byte.length !== 1 || byte < ' ' || byte === '\x7f' || /[\w\-.~]/.test(byte))
      throw new Error(`${encoded} in ${path}`);
  }
}

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
