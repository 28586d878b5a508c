/** Tests which regular expressions are equal to a route. */
import t from 'tap';
import { exactPattern, expressionPaths, prefixPattern } from '#gateway/workbench/import/path-pattern.ts';

t.test('converts expressions that match a whole path', async (t) => {
  const cases: readonly (readonly [string, readonly string[] | null, boolean?])[] = [
    ['/a/[^/]+/b', ['/a/{p2}/b']],
    ['^/a/[^/?#]+$', ['/a/{p2}']],
    ['/a/(?<id>[^/]+)/b/?', ['/a/{p2}/b']],
    ['/a(/.*)?', ['/a/*']],
    ['/a/.*', ['/a/*']],
    ['.*', ['*']],
    ['/.*', ['*']],
    ['/a/(b|c)/(d|e)', ['/a/b/d', '/a/b/e', '/a/c/d', '/a/c/e']],
    ['/v1\\.0/x\\-y', ['/v1.0/x-y']],
    ['\\/a\\/b', ['/a/b']],
    ['/a/[0-9]+', ['/a/{p2}'], true],
    ['/a/\\d{4}', ['/a/{p2}'], true],
    ['/a/[a-zA-Z0-9_-]+/b', ['/a/{p2}/b'], true],
    ['/a.*', null],
    ['/a/.*/b', null],
    ['/a/(b(c|d))', null],
    ['/a|/b', null],
    ['/(?!a)b', null],
    ['/a/b+', null],
    [`/(${Array.from({ length: 20 }, (_, i) => `a${i}`).join('|')})`, null],
    ['/[', null],
    ['/(a', null],
  ];
  for (const [expression, paths, isWider = false] of cases) {
    const found = expressionPaths(expression);
    const notes = isWider ? [`the route matches more than ${expression}`] : [];
    t.strictSame(found, paths === null ? null : { paths, notes }, expression);
  }
});

t.test('escapes plain paths', async (t) => {
  t.equal(prefixPattern('/'), '*');
  t.equal(prefixPattern('/a/b/'), '/a/b/*');
  t.equal(exactPattern('/'), '/');
  t.equal(exactPattern('/a b/{c}/:d/*'), '/a%20b/%7Bc%7D/%3Ad/%2A');
  t.equal(exactPattern('a'), null);
  t.equal(exactPattern('/a//b'), null);
  t.equal(prefixPattern(`/${'a'.repeat(3000)}`), null);
});
