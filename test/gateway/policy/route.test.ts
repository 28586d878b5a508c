import { join } from 'node:path';
import t from 'tap';
import { coveredBy, parseRoute } from '#gateway/policy/route.ts';
import { casesUnder } from '#test/support/arrow-cases.ts';

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

const ROUTES = join(import.meta.dirname, 'routes.md');

t.test('the error for a wrong route says how to write it', async (t) => {
  for (const [text = '', message = 'no message'] of casesUnder(ROUTES, 'Mistakes'))
    t.throws(() => parseRoute(text), { message }, encodeURIComponent(text));
  // Express's notation is refused; elsewhere in a segment a colon is an ordinary character.
  t.strictSame(parseRoute('GET /%3Aid/a:b').segments, [literal(':id'), literal('a:b')]);
});

t.test('a route is covered when others match all of its requests', async (t) => {
  for (const [narrow = '', others = ''] of casesUnder(ROUTES, 'Covered')) {
    const wide = others === '(nothing)' ? [] : others.split(' & ');
    const found = coveredBy(
      parseRoute(narrow),
      wide.map((one) => parseRoute(one.replaceAll(/[()]/g, ''))),
    );
    const texts = found.map(({ text }) => text);
    t.strictSame(
      texts,
      wide.filter((one) => !one.startsWith('(')),
      `${narrow} by ${others}`,
    );
  }
});
