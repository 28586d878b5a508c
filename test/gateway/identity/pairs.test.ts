/** Tests cookies and queries of ordinary clients, and of clients that imitate others. */
import assert from 'node:assert/strict';
import t from 'tap';
import { presentedValues } from '#gateway/identity/credential.ts';
import {
  bytesOf,
  formText,
  hasParameter,
  hasTooManyParameters,
  spellingOf,
} from '#gateway/identity/pairs.ts';
import { pathValue } from '#gateway/policy/path-value.ts';
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

t.test('finds a cookie by its name', async (t) => {
  const cases = [
    ['sid=1', '1'],
    ['a=b; sid=1; c=d', '1'],
    ['a=b;sid=1', '1'],
    [' \t sid \t=\t1 ', '1'],
    ['sid="1"', '1'],
    ['sid=%31', '1'],
    ['sid=a=b', 'a=b'],
    ['sid=%zz%', '%zz%'],
    ['sid=1; sid=1', '1'],
    ['sid=; sid=1', '1'],
    ['sid=1; sid=2', TWO],
    ['sid=1; sid="2"', TWO],
    ['', null],
    ['sid', null],
    ['sid=', null],
    ['sid=" "', null],
    ['xsid=1; sidx=2', null],
    ['a="sid=1"', null],
    [';;;=;=1;', null],
  ] as const;
  for (const [field, value] of cases) t.equal(cookieValue(field), value, field);
});

t.test('finds a cookie whose name PHP reads as the configured one', async (t) => {
  const cases = [
    ['laravel_session=1', '1'],
    ['laravel.session=1', '1'],
    ['laravel session=1', '1'],
    ['laravel[session=1', '1'],
    ['laravel_session=1; laravel.session=1', '1'],
    ['laravel_session=1; laravel.session=2', TWO],
    ['laravel%2Esession=1', '1'],
    ['laravel+session=1', '1'],
    ['Laravel.Session=1', '1'],
    ['laravel-session=1', null],
    ['laravelsession=1', null],
  ] as const;
  for (const [field, value] of cases) {
    for (const name of ['laravel_session', 'laravel.session'])
      t.equal(cookieValue(field, name), value, `${field} for ${name}`);
  }
});

t.test('finds a cookie as ASP.NET, old PHP and Python read it', async (t) => {
  const cases = [
    ['SID=1', '1'],
    ['%73id=1', '1'],
    ['sid=1; Sid=2', TWO],
    ['sid="\\113EY"', 'KEY'],
    ['sid="\\K\\E\\Y"', 'KEY'],
    ['sid="\\113EY"; sid=KEY', 'KEY'],
    ['sid="\\"\\\\"', '"\\'],
    ['sid="\\400\\', '"\\400\\'],
    ['sid="K\\"', 'K\\'],
    ['sid=\\113EY', '\\113EY'],
    ['sid="K E,Y"', 'K E,Y'],
    ['a=b sid=KEY', 'KEY'],
    ['a=b\tsid = KEY', 'KEY'],
    ['a=b,sid=KEY', 'KEY'],
    ['a=b, sid=KEY', 'KEY'],
    ['a="b" sid="\\113EY"', 'KEY'],
    ['a="b;" sid=KEY', 'KEY'],
    ['$Version=1 sid=KEY; $Path=/', 'KEY'],
    ['$x sid=KEY', 'KEY'],
    ['a=b sid=KEY c=d', 'KEY'],
    ['a=b sid=1 sid=2', TWO],
    ['a=b sid=1; sid=2', TWO],
    ['sid=1 sid=2', TWO],
    ['sid=KEY path=/', TWO],
    ['sid=KEY,x', TWO],
    ['sid="KEY" x', TWO],
    ['a=b sid=KE,Y', TWO],
    ['a="sid=1"', null],
    ['a=b xsid=1 sidx=2', null],
    ['a=b sid; c=d', null],
  ] as const;
  for (const [field, value] of cases) t.equal(cookieValue(field), value, field);
});

t.test(
  'each value that a cookie may have is found, because bans are compared with all of them',
  async (t) => {
    const valuesOf = (field: string) =>
      presentedValues(['Cookie', field], [{ kind: 'cookie', cookie: 'sid' }]);
    t.same(valuesOf('a=b; sid=KEY path=/; SID=2'), ['KEY path=/', 'KEY', '2']);
    t.ok(valuesOf('sid=KE,Y path=/').includes('KE,Y'), 'as Python reads it');
  },
);

t.test('finds a query parameter by its name, in every spelling', async (t) => {
  const cases = [
    ['/a?key=1', '1'],
    ['/a?b=2&key=1&c', '1'],
    ['/a?b=2;key=1', '1'],
    ['/a?k%65y=1', '1'],
    ['/a?%6B%65%79=1', '1'],
    ['/a?key=%31', '1'],
    ['/a?key=a+b', 'a b'],
    ['/a?key=a%20b', 'a b'],
    ['/a?key=a=b', 'a=b'],
    ['/a?key=1&key=1', '1'],
    ['/a?key=1&key=2', TWO],
    ['/a?key=1&k%65y=2', TWO],
    ['/a?key=1?key=2', '1?key=2'],
    ['/a', null],
    ['/a?', null],
    ['/a?key', null],
    ['/a?key=', null],
    ['/a?key=+', null],
    ['/a?KEY=1', '1'],
    ['/a?Key=1&kEY=1', '1'],
    ['/a?key=1&KEY=2', TWO],
    ['/a?k%45y=1', '1'],
    ['/a?+key=1', '1'],
    ['/a?%20key=1', '1'],
    ['/a?key+=1', '1'],
    ['/a?key=%u20AC%uD83D%uDE00', '\xe2\x82\xac\xf0\x9f\x98\x80'],
    ['/a?key=%25u0031', '%u0031'],
    ['/a?key%00x=1', '1'],
    ['/a?k+ey=1', '1'],
    ['/a?[key]=1', '1'],
    ['/a?%5Bkey%5D=1', '1'],
    ['/a?[key]x=1', '1'],
    ['/a?[key]x=2]=1', TWO],
    ['/a?[key]x;y=1', '1'],
    ['/a?[key]x;key=2;y]=1', TWO],
    ['/a?key%00;=1', '1'],
    ['/a?x=1;key%5B=2]=1', TWO],
    ['/a?x=1;key[=2]=1', TWO],
    ['/a?key[]=1', '1'],
    ['/a?key[0]=1', '1'],
    ['/a?key]=1', '1'],
    ['/a?.key.=1', '1'],
    ['/a??key=1', '1'],
    ['/a?[key]=1&key=2', TWO],
    ['/a?x[key]=1', null],
    ['/a?[x]key=1', null],
    ['/a?ke[x]y=1', null],
    ['/a?ke%zz=1', null],
    ['/a?%=1', null],
    ['/a?=1', null],
    ['/key=1', null],
    ['/a?xkey=1&keyx=2', null],
  ] as const;
  for (const [target, value] of cases) t.equal(queryValue(target), value, target);
});

t.test('finds a query parameter whose name PHP or ASP.NET reads as the configured one', async (t) => {
  const cases = [
    ['/a?api_key=1', '1'],
    ['/a?api.key=1', '1'],
    ['/a?api+key=1', '1'],
    ['/a?api%20key=1', '1'],
    ['/a?api%2ekey=1', '1'],
    ['/a?api[key=1', '1'],
    ['/a?api%5Bkey=1', '1'],
    ['/a?API.Key=1', '1'],
    ['/a?api_key=1&api.key=1', '1'],
    ['/a?api_key=1&api.key=2', TWO],
    ['/a?api%u005fkey=1', '1'],
    ['/a?%U0061pi%u005Fkey=%u0031', '1'],
    ['/a?api%u002dkey=1', null],
    ['/a?api%u005=1', null],
    ['/a?api-key=1', null],
    ['/a?apikey=1', null],
    ['/a?api..key=1', '1'],
    ['/a?[api_key]=1', '1'],
    ['/a?[api.key]=1', '1'],
    ['/a?api__key=1', null],
    ['/a?api_.key=1', '1'],
  ] as const;
  for (const [target, value] of cases) {
    for (const name of ['api_key', 'api.key', 'API_KEY'])
      t.equal(queryValue(target, name), value, `${target} for ${name}`);
  }
});

t.test('finds a query parameter whose configured name has brackets', async (t) => {
  const cases = [
    ['/a?u[n]=1', '1'],
    ['/a?u%5Bn%5D=1', '1'],
    ['/a?U[N]=1', '1'],
    ['/a?u[n][]=1', '1'],
    ['/a?u[n]x=1', '1'],
    ['/a?u[n]=1&u%5bn]=2', TWO],
    ['/a?u=1', null],
    ['/a?u[m]=1', null],
    ['/a?x[u][n]=1', null],
  ] as const;
  for (const [target, value] of cases) t.equal(queryValue(target, 'u[n]'), value, target);
  t.equal(queryValue('/a?ids[]=1', 'ids[]'), '1');
  t.equal(queryValue('/a?[id]=1', '[id]'), '1');
});

t.test('a space before a parameter may be dropped, and may stand for a _ at the beginning', async (t) => {
  for (const target of ['/a?%20_key=1', '/a?+_key=1', '/a?+%20_key=1', '/a?.key=1', '/a?%5Bkey=1'])
    t.equal(queryValue(target, '_key'), '1', target);
});

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

t.test('finds a path parameter, without segment parameters', async (t) => {
  const cases = [
    ['/a/w1/b', false, 'w1'],
    ['/a/w1', false, 'w1'],
    ['/a/w1/b/c', true, 'w1/b/c'],
    ['/a/%40w', false, '@w'],
    ['/a/w1;x=1/b', false, 'w1'],
    ['/a/w1%3Bx/b', false, 'w1'],
    ['/a;x/w1/b', false, 'w1'],
    ['/a//b', false, null],
    ['/a/w1;x/b;y', true, 'w1/b'],
    ['/a/group%2Fname', false, 'group/name'],
    ['/a/q/..;/w1', false, 'q'],
    ['/a', false, null],
    ['/', false, null],
  ] as const;
  for (const [path, takesRest, value] of cases) t.equal(pathValue(path, 1, takesRest, false), value, path);
});

t.test('keeps byte A0 in a value, although it is a blank in Latin-1', async (t) => {
  const cases = [
    ['k%A0', 'k\xa0'],
    ['k%C3%A0', 'k\xc3\xa0'],
    ['%A0', '\xa0'],
    ['%09%20+k%0B%20', 'k'],
  ] as const;
  for (const [sent, value] of cases) {
    t.equal(queryValue(`/a?key=${sent}`), value, sent);
    if (!sent.includes('+')) t.equal(cookieValue(`sid=${sent}`), value, sent);
  }
  t.equal(cookieValue('sid=k\xc3\xa0'), 'k\xc3\xa0');
  t.equal(cookieValue('sid=\xa0k\xa0'), 'k', 'Node.js applications may trim A0');
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
      .map((pair) => spellingOf(wanted, bytesOf(formText(pair.split('=', 1)[0] ?? '')), 0, undefined, false));
  return (
    spellings(/[&;]/).some((spelling) => spelling !== 'other') ||
    (/[[\]]|%5[bd]|%00/i.test(query) && spellings(/&/).includes('odd'))
  );
}
