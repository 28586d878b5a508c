import t from 'tap';
import { coveredBy, parseRoute } from '#gateway/policy/route.ts';

const param = (name: string, takesRest = false) => ({ kind: 'param', name, takesRest }) as const;
const rest = { kind: 'rest' } as const;
const literal = (text: string) => ({ kind: 'literal', text }) as const;

t.test('a pattern is parsed into its segments', async (t) => {
  const cases = [
    ['GET /', []],
    ['GET *', [rest]],
    ['GET /*', [rest]],
    ['GET /a', [literal('a')]],
    ['GET /a/{id}/b', [literal('a'), param('id'), literal('b')]],
    ['GET /a/*', [literal('a'), rest]],
    ['GET /a/{name*}', [literal('a'), param('name', true), rest]],
    ['GET /a.b/~c/@me/d,e', [literal('a.b'), literal('~c'), literal('@me'), literal('d,e')]],
    ['GET /...', [literal('...')]],
    // A literal can have any spelling that a request may have.
    ['GET /%61/%40me', [literal('a'), literal('@me')]],
    ['GET /a%20b/%c3%a9', [literal('a b'), literal('\xc3\xa9')]],
  ] as const;
  for (const [text, segments] of cases) t.strictSame(parseRoute(text).segments, segments, text);
});

t.test('methods are a set, or every method', async (t) => {
  t.strictSame([...(parseRoute('GET /').methods ?? [])], ['GET']);
  t.strictSame([...(parseRoute('GET,PUT,M-SEARCH /').methods ?? [])], ['GET', 'PUT', 'M-SEARCH']);
  t.equal(parseRoute('* /a').methods, null);
});

t.test('the text of a route has one space', async (t) => {
  t.equal(parseRoute('  GET \t /a  ').text, 'GET /a');
});

t.test('the error for a wrong route says how to write it', async (t) => {
  const cases: readonly (readonly [text: string, message: string])[] = [
    ['', 'must be METHODS PATH, such as'],
    ['/a', 'must be METHODS PATH, such as'],
    ['GET', 'must be METHODS PATH, such as'],
    ['GET, PUT /a', 'must be METHODS PATH, such as'],
    ['GET /a /b', 'must be METHODS PATH, such as'],
    ['get /a', 'method "get" is unknown; write upper-case methods'],
    ['GTE /a', 'method "GTE" is unknown'],
    ['GET|PUT /a', 'joined by commas'],
    ['GET,,PUT /a', 'method "" is unknown'],
    ['GET,* /a', 'method "*" is unknown'],
    ['GET,GET /a', 'method GET appears twice; write it once'],
    ['HEAD /a', 'HEAD counts as GET; write GET'],
    ['GET a', 'does not begin with /; write /PATH'],
    ['GET http://host/a', 'does not begin with /; write /PATH'],
    ['GET **', 'does not begin with /; write /PATH'],
    ['GET /a/', 'empty segment; remove the slash; matching ignores'],
    ['GET //a', 'empty segment; remove the slash; matching ignores'],
    ['GET /a/*/b', '* matches the rest of the path; it must be the last segment'],
    ['GET /{a*}/b', '{a*} matches the rest of the path; it must be the last segment'],
    ['GET /a*', 'segment "a*" is neither a literal nor a wildcard; write a literal'],
    ['GET /{a', 'segment "{a" is neither a literal nor a wildcard; write a literal'],
    ['GET /{}', 'segment "{}" is neither a literal nor a wildcard; write a literal'],
    ['GET /x{a}', 'segment "x{a}" is neither a literal nor a wildcard; write a literal'],
    ['GET /a?b', 'segment "a?b" is neither a literal nor a wildcard; write a literal'],
    ['GET /a;b', 'segment "a;b" is neither a literal nor a wildcard; write a literal'],
    ['GET /(a|b)', 'segment "(a|b)" is neither a literal nor a wildcard; write a literal'],
    ['GET /\xe9', 'other characters percent-encoded'],
    ['GET /.', 'segment "." is neither a literal nor a wildcard; write a literal'],
    ['GET /a/..', 'segment ".." is neither a literal nor a wildcard; write a literal'],
    ['GET /%2e%2E', 'segment "%2e%2E" is neither a literal nor a wildcard; write a literal'],
    ['GET /a%00b', 'can match no request: the path contains an encoded control character'],
    ['GET /%2500', 'can match no request'],
    ['GET /a%', 'is neither a literal nor a wildcard'],
    [
      'GET /:id',
      'segment ":id" begins with a colon; write {param} for any one segment, and a literal : as %3A',
    ],
  ];
  for (const [text, message] of cases)
    t.throws(() => parseRoute(text), { message }, encodeURIComponent(text));
  // Express's notation is refused; elsewhere in a segment a colon is an ordinary character.
  t.strictSame(parseRoute('GET /%3Aid/a:b').segments, [literal(':id'), literal('a:b')]);
});

t.test('a route is covered when others match all of its requests', async (t) => {
  const cases: readonly (readonly [narrow: string, wide: readonly string[], covering: readonly string[]])[] =
    [
      ['GET /a', [], []],
      ['GET /a', ['GET /a'], ['GET /a']],
      ['GET /a', ['GET /b'], []],
      ['GET /a', ['PUT /a'], []],
      ['GET /a', ['* /a'], ['* /a']],
      ['GET,PUT /a', ['GET /a'], []],
      ['GET,PUT /a', ['GET /a', 'PUT /a'], ['GET /a', 'PUT /a']],
      ['GET,PUT /a', ['GET /a', 'PUT /*'], ['GET /a', 'PUT /*']],
      ['* /a', ['GET /a'], []],
      ['* /a', ['* *'], ['* *']],
      ['GET /a', ['GET /a/*'], ['GET /a/*']],
      ['GET /a/b', ['GET /a/*'], ['GET /a/*']],
      ['GET /a/*', ['GET /a/*'], ['GET /a/*']],
      ['GET /a/*', ['GET /a/{x*}'], []],
      ['GET /a/{x*}', ['GET /a/*'], ['GET /a/*']],
      ['GET /a/{x*}', ['GET /a/{y}/*'], ['GET /a/{y}/*']],
      ['GET /a/{x}/b', ['GET /a/{y*}'], ['GET /a/{y*}']],
      ['GET /a', ['GET /a/{y*}'], []],
      ['GET /a/{x}', ['GET /a/b'], []],
      ['GET /a/b', ['GET /a/{x}'], ['GET /a/{x}']],
      ['GET /a/*', ['GET /a'], []],
      ['GET /a/b', ['GET /a'], []],
      ['GET /', ['GET /'], ['GET /']],
      ['GET /', ['GET /*'], ['GET /*']],
      ['GET /%61', ['GET /a'], ['GET /a']],
    ];
  for (const [narrow, wide, covering] of cases) {
    const found = coveredBy(
      parseRoute(narrow),
      wide.map((one) => parseRoute(one)),
    ).map(({ text }) => text);
    t.strictSame(found, covering, `${narrow} by ${wide.join(' and ')}`);
  }
});
