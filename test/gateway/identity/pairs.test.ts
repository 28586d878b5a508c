/** Tests cookies and queries of ordinary clients, and of clients that imitate others. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import t from 'tap';
import { presentedValues } from '#gateway/identity/credential.ts';
import { formText, hasParameter, hasTooManyParameters, nameOf, spellingOf } from '#gateway/identity/pairs.ts';
import { pathValue } from '#gateway/policy/target.ts';
import { arrowCases } from '#test/support/arrow-cases.ts';
import { fc } from '#test/support/fast-check.ts';
import { oddQueries } from '#test/support/odd-names.ts';
import { rounds } from '#test/support/seed.ts';

/** Stands for several different values, with which a request is refused. */
const TWO = 2;

const only = ([value, another]: readonly string[]) => (another === undefined ? (value ?? null) : TWO);
const cookieValue = (field: string, cookie = 'sid') =>
  only(presentedValues(['Cookie', field], [{ kind: 'cookie', cookie }]));
const queryValue = (target: string, parameter = 'key') =>
  only(presentedValues([], [{ kind: 'query', parameter }], target));

const VALUES_OF: Readonly<Record<string, (sent: string, name: string) => string | typeof TWO | null>> = {
  Cookie: cookieValue,
  Query: queryValue,
  Segment: (path, takes) => pathValue(path, 1, takes === 'rest', false),
};

for (const { heading, cases } of arrowCases(join(import.meta.dirname, 'values.md'))) {
  t.test(heading, async (t) => {
    const [kind, ...names] = heading.replace(/ of .*/, '').split(/, | or | /);
    for (const [sent = '', expected] of cases)
      for (const name of names) {
        const value = VALUES_OF[kind ?? '']?.(sent, name) ?? null;
        t.equal(value === TWO ? 'several' : (value ?? 'none'), expected, `${sent} for ${name}`);
      }
  });
}

t.test(
  'each value that a cookie may have is found, because bans are compared with all of them',
  async (t) => {
    const valuesOf = (field: string) =>
      presentedValues(['Cookie', field], [{ kind: 'cookie', cookie: 'sid' }]);
    t.same(valuesOf('a=b; sid=KEY path=/; SID=2'), ['KEY path=/', 'KEY', '2']);
    t.ok(valuesOf('sid=KE,Y path=/').includes('KE,Y'), 'as Python reads it');
  },
);

t.test('reads ten thousand pairs in one pass', async (t) => {
  for (const part of ['sid=1 ', 'sid=1,', 'sid="1" ', 'sid= ', 'a= ', 'a '])
    t.not(cookieValue(`${part.repeat(10_000)}; sid=1`), null, part);
  const pairs = Array.from({ length: 10_000 }, (_, i) => `a${i}`);
  for (const tail of ['', '=']) {
    const text = pairs.map((name) => name + tail);
    t.equal(cookieValue(`${text.join(';')}; sid=1`), '1');
    t.equal(queryValue(`/a?${text.join('&')}&key=1`), '1');
  }
});

t.test('reads every byte of a query value, without ASCII blanks around it', async () => {
  const byte = fc.tuple(fc.integer({ min: 0, max: 255 }), fc.boolean());
  fc.assert(
    fc.property(fc.array(byte, { maxLength: 8 }), (bytes) => {
      const sent = bytes.map(([code, isPlain]) => {
        const char = String.fromCharCode(code);
        if (char === ' ' && isPlain) return '+';
        return isPlain && /[\w.~-]/.test(char) ? char : `%${code.toString(16).padStart(2, '0')}`;
      });
      const meant = String.fromCharCode(...bytes.map(([code]) => code));
      const bare = meant.replace(/^[\t-\r ]+/, '').replace(/[\t-\r ]+$/, '');
      assert.equal(queryValue(`/a?key=${sent.join('')}`), bare || null);
    }),
    { numRuns: rounds(2000) },
  );
});

t.test('a key is the same in a query, a cookie and a header, and as an application reads it', async () => {
  const sources = [
    { kind: 'query', parameter: 'key' },
    { kind: 'cookie', cookie: 'key' },
    { kind: 'header', header: 'x-api-key' },
  ] as const;
  const key = fc
    .string({
      unit: fc.oneof(
        fc.constantFrom('k', 'à', 'Р', '\u00a0', '%', '+'),
        fc.string({ unit: 'grapheme', minLength: 1, maxLength: 1 }),
      ),
      minLength: 1,
      maxLength: 6,
    })
    .filter((text) => text.isWellFormed() && !/\p{Cc}|^ | $/u.test(text));
  fc.assert(
    fc.property(key, (key) => {
      const bytes = Buffer.from(key).toString('latin1');
      const encoded = encodeURIComponent(key);
      assert.equal(new URLSearchParams(`key=${encoded}`).get('key'), key);
      const requests: readonly (readonly [string[], string])[] = [
        [[], `/a?key=${encoded}`],
        [['Cookie', `a=b; key=${encoded}`], '/a'],
        [['X-Api-Key', bytes], '/a'],
        [['Cookie', `key=${encoded}`, 'X-Api-Key', bytes], `/a?key=${encoded}`],
      ];
      for (const [rawHeaders, target] of requests) {
        assert.deepEqual(presentedValues(rawHeaders, sources, target), [bytes]);
      }
    }),
    { numRuns: rounds(2000) },
  );
});

t.test('a condition finds each parameter that an application may read', (t) => {
  const wanted = ['api_key', 'a[pi]', '_', 'x', 'apikey', 'a.b', 'API-KEY', 'api', 'api_key_'];
  const letters = ['a', 'P', 'i', 'k', 'x', '_', '.', '[', ']', '%5B', '%00', '+', '%u005f', '?', '-'];
  const name = fc.array(fc.constantFrom(...letters), { maxLength: 8 }).map((parts) => parts.join(''));
  const pairs = fc.array(fc.tuple(name, fc.constantFrom('&', ';', '=', '=1&', '&&')), { maxLength: 6 });
  const check = (query: string): void => {
    for (const one of wanted)
      assert.equal(hasParameter(`/a?${query}`, one), isIn(query, one), `${one} in ${query}`);
  };
  fc.assert(
    fc.property(pairs, (parts) => check(parts.flat().join(''))),
    { numRuns: rounds(4000) },
  );
  for (const query of oddQueries(rounds(4000))) check(query);
  t.end();
});

t.test('counts the parameters of a query, without those that are empty', async (t) => {
  for (const pair of ['x&', 'x=1&', 'x;', '&;x&']) {
    t.notOk(hasTooManyParameters(`/a?${pair.repeat(1000)}`), pair);
    t.ok(hasTooManyParameters(`/a?${pair.repeat(1001)}`), pair);
  }
  t.notOk(hasTooManyParameters(`/${'x&'.repeat(2000)}`), 'a path has none');
  t.notOk(hasTooManyParameters(`/a?${'&;'.repeat(2000)}`));
});

/** Compares each name by itself. */
function isIn(query: string, wanted: string): boolean {
  const spellings = (separator: RegExp) =>
    query
      .split(separator)
      .filter((pair) => pair !== '')
      .map((pair) => spellingOf(nameOf(wanted), nameOf(formText(pair.split('=', 1)[0] ?? ''))));
  return (
    spellings(/[&;]/).some((spelling) => spelling !== 'other') ||
    (/[[\]]|%5[bd]|%00/i.test(query) && spellings(/&/).includes('odd'))
  );
}
