/** Tests which requests get a reply in HTML. */
import t from 'tap';
import { prefersHtml } from '#gateway/http/accept.ts';

const CHROME =
  'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7';
const FIREFOX = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

const PAGE = [
  CHROME,
  FIREFOX,
  'text/html',
  'TEXT/HTML',
  'text/html;charset=utf-8',
  'text/html ; q=0.9 , */* ; q=0.8',
  'text/html;q=0.2',
  'text/html, application/json;q=0.9',
  'application/json;q=0.5, text/html;q=0.501',
  'text/html, application/*;q=0.9, */*',
  'text/html;q=0.3, text/html;level=1;q=0.8, application/problem+json;q=0.5',
];

const DATA = [
  '*/*',
  '',
  'application/json',
  'application/json, text/plain, */*',
  'application/json, text/html;q=0.9',
  'application/problem+json, text/html;q=0.9',
  'application/vnd.api+json, text/html;q=0.9',
  'text/html, application/json',
  'text/html, */*',
  'text/html;q=0.8, */*;q=0.8',
  'text/*',
  'text/html;q=0',
  'text/html;q=0.000',
  'text/html;q=1.5',
  'text/html;q=x',
  'text/html;q=-1',
  'text/html;q=',
  'text/html;q=0.1234',
  'text/htmlx',
  'xtext/html',
  '"text/html"',
  'application/xhtml+xml',
  'image/png',
  ';q=1,,,;;',
];

t.test('HTML: text/html is listed, and ranks above JSON', async (t) => {
  for (const accept of PAGE) t.equal(prefersHtml(['Host', 'a', 'aCCept', accept]), true, accept);
});

t.test('JSON: everything else', async (t) => {
  for (const accept of DATA) t.equal(prefersHtml(['Accept', accept]), false, accept);
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
