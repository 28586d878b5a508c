/** Which requests get a reply in HTML: the cases of accept.md, and several fields. */
import { join } from 'node:path';
import t from 'tap';
import { prefersHtml } from '#gateway/http/accept.ts';
import { arrowCases } from '#test/support/arrow-cases.ts';

for (const { heading, cases } of arrowCases(join(import.meta.dirname, 'accept.md')))
  t.test(heading, async (t) => {
    for (const [accept = '', format] of cases)
      t.equal(prefersHtml(['Host', 'a', 'aCCept', accept]), format === 'page', accept);
  });

t.test('only Accept counts', async (t) => {
  t.equal(prefersHtml([]), false);
  t.equal(prefersHtml(['Host', 'a', 'Accept-Language', 'text/html', 'Accepted', 'text/html']), false);
});

t.test('several Accept fields are one list', async (t) => {
  t.equal(prefersHtml(['Accept', '*/*;q=0.8', 'accept', 'text/html']), true);
  t.equal(prefersHtml(['Accept', 'text/html', 'accept', 'application/json']), false);
});

t.test('does not read a list that is longer than any browser sends', async (t) => {
  const long = `text/html,${'a/b,'.repeat(200)}`;
  t.equal(prefersHtml(['Accept', long]), false);
  t.equal(prefersHtml(['Accept', `text/html,${';q=0.1,'.repeat(2000)}`]), false);
  const many = Array.from({ length: 60 }, () => ['Accept', 'text/html;q=0.9']).flat();
  t.equal(prefersHtml(many), false, 'many fields count like one long one');
});
