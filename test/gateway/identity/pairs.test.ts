/** Tests cookies and queries of ordinary clients, and of clients that imitate others. */
import assert from 'node:assert/strict';
import t from 'tap';
import { presentedCredential, presentedValues } from '#gateway/identity/credential.ts';
import {
  AMBIGUOUS,
  bytesOf,
  cookieValue,
  formText,
  queryValue,
  spellingOf,
} from '#gateway/identity/pairs.ts';
import { QueryNames } from '#gateway/identity/query-names.ts';
import { pathValue } from '#gateway/policy/path-value.ts';
import { fc } from '#test/support/fast-check.ts';
import { oddQueries } from '#test/support/odd-names.ts';
import { rounds } from '#test/support/seed.ts';

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
    ['sid=1; sid=2', AMBIGUOUS],
    ['sid=1; sid="2"', AMBIGUOUS],
    ['', null],
    ['sid', null],
    ['sid=', null],
    ['sid=" "', null],
    ['xsid=1; sidx=2', null],
    ['a="sid=1"', null],
    [';;;=;=1;', null],
  ] as const;
  for (const [field, value] of cases) t.equal(cookieValue(field, 'sid'), value, field);
});

t.test('finds a cookie whose name PHP reads as the configured one', async (t) => {
  const cases = [
    ['laravel_session=1', '1'],
    ['laravel.session=1', '1'],
    ['laravel session=1', '1'],
    ['laravel[session=1', '1'],
    ['laravel_session=1; laravel.session=1', '1'],
    ['laravel_session=1; laravel.session=2', AMBIGUOUS],
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
    ['sid=1; Sid=2', AMBIGUOUS],
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
    ['a=b sid=1 sid=2', AMBIGUOUS],
    ['a=b sid=1; sid=2', AMBIGUOUS],
    ['sid=1 sid=2', AMBIGUOUS],
    ['sid=KEY path=/', AMBIGUOUS],
    ['sid=KEY,x', AMBIGUOUS],
    ['sid="KEY" x', AMBIGUOUS],
    ['a=b sid=KE,Y', AMBIGUOUS],
    ['a="sid=1"', null],
    ['a=b xsid=1 sidx=2', null],
    ['a=b sid; c=d', null],
  ] as const;
  for (const [field, value] of cases) t.equal(cookieValue(field, 'sid'), value, field);
});

t.test('each value that a cookie may have is compared with bans', async (t) => {
  const sources = [{ kind: 'cookie', cookie: 'sid' }] as const;
  const values = presentedValues(['Cookie', 'a=b; sid=KEY path=/; SID=2'], sources, '/');
  t.same([...values], ['KEY path=/', 'KEY', '2']);
  t.ok(presentedValues(['Cookie', 'sid=KE,Y path=/'], sources, '/').has('KE,Y'), 'as Python reads it');
});

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
    ['/a?key=1&key=2', AMBIGUOUS],
    ['/a?key=1&k%65y=2', AMBIGUOUS],
    ['/a?key=1?key=2', '1?key=2'],
    ['/a', null],
    ['/a?', null],
    ['/a?key', null],
    ['/a?key=', null],
    ['/a?key=+', null],
    ['/a?KEY=1', '1'],
    ['/a?Key=1&kEY=1', '1'],
    ['/a?key=1&KEY=2', AMBIGUOUS],
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
    ['/a?[key]x=2]=1', AMBIGUOUS],
    ['/a?[key]x;y=1', '1'],
    ['/a?[key]x;key=2;y]=1', AMBIGUOUS],
    ['/a?key%00;=1', '1'],
    ['/a?x=1;key%5B=2]=1', AMBIGUOUS],
    ['/a?x=1;key[=2]=1', AMBIGUOUS],
    ['/a?key[]=1', '1'],
    ['/a?key[0]=1', '1'],
    ['/a?key]=1', '1'],
    ['/a?.key.=1', '1'],
    ['/a??key=1', '1'],
    ['/a?[key]=1&key=2', AMBIGUOUS],
    ['/a?x[key]=1', null],
    ['/a?[x]key=1', null],
    ['/a?ke[x]y=1', null],
    ['/a?ke%zz=1', null],
    ['/a?%=1', null],
    ['/a?=1', null],
    ['/key=1', null],
    ['/a?xkey=1&keyx=2', null],
  ] as const;
  for (const [target, value] of cases) t.equal(queryValue(target, 'key'), value, target);
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
    ['/a?api_key=1&api.key=2', AMBIGUOUS],
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
    ['/a?u[n]=1&u%5bn]=2', AMBIGUOUS],
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
    t.not(cookieValue(`${part.repeat(10_000)}; sid=1`, 'sid'), null, part);
  const pairs = Array.from({ length: 10_000 }, (_, i) => `a${i}`);
  for (const tail of ['', '=']) {
    const text = pairs.map((name) => name + tail);
    t.equal(cookieValue(`${text.join(';')}; sid=1`, 'sid'), '1');
    t.equal(queryValue(`/a?${text.join('&')}&key=1`, 'key'), '1');
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
    t.equal(queryValue(`/a?key=${sent}`, 'key'), value, sent);
    if (!sent.includes('+')) t.equal(cookieValue(`sid=${sent}`, 'sid'), value, sent);
  }
  t.equal(cookieValue('sid=k\xc3\xa0', 'sid'), 'k\xc3\xa0');
  t.equal(cookieValue('sid=\xa0k\xa0', 'sid'), 'k', 'Node.js applications may trim A0');
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
      assert.equal(queryValue(`/a?key=${sent.join('')}`, 'key'), bare || null);
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
        const presented = presentedCredential(rawHeaders, sources, target);
        assert.equal(presented.kind === 'one' ? presented.value : presented.kind, bytes);
      }
    }),
    { numRuns: rounds(2000) },
  );
});

t.test('one pass over a query finds the parameters that a comparison of each name finds', (t) => {
  const wanted = ['api_key', 'a[pi]', '_', 'x', 'apikey', 'a.b', 'API-KEY', 'api', 'api_key_'];
  const names = new QueryNames(['nothing', ...wanted]);
  const letter = fc.constantFrom(
    'a',
    'P',
    'i',
    'k',
    'x',
    '_',
    '.',
    '[',
    ']',
    '%5B',
    '%00',
    '+',
    '%u005f',
    '?',
    '-',
  );
  const name = fc.array(letter, { maxLength: 8 }).map((letters) => letters.join(''));
  const pairs = fc.array(fc.tuple(name, fc.constantFrom('&', ';', '=', '=1&', '&&')), { maxLength: 6 });
  const check = (query: string): void => {
    const found = names.in(`/a?${query}`);
    for (const one of wanted) assert.equal(found?.has(one), isIn(query, one), `${one} in ${query}`);
  };
  fc.assert(
    fc.property(pairs, (parts) => check(parts.flat().join(''))),
    { numRuns: rounds(4000) },
  );
  for (const query of oddQueries(rounds(4000))) check(query);
  t.end();
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
