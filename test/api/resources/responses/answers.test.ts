import t from 'tap';
import { answersIn, mergeTimes } from '#api/resources/responses/answers.ts';
import { readContent } from '#api/resources/surveys/content.ts';

t.test('merges times, limits them to a day, and sums them at the end', async (t) => {
  t.strictSame(mergeTimes({ a: 1, _total: 1 }, { b: 2 }, false), { a: 1, b: 2 });
  t.strictSame(mergeTimes({ a: 1 }, { a: 5, b: -2, c: 1e15, _total: 9 }, true), {
    a: 5,
    b: 0,
    c: 86_400_000,
    _total: 86_400_005,
  });
  t.strictSame(mergeTimes({}, {}, true), {}, 'without times there is no sum');
  t.strictSame(mergeTimes({ a: 1, b: 2, _total: 3 }, { b: 5, _total: 6 }, true), { a: 1, b: 5, _total: 6 });
});

const survey = (...fieldIds: string[]) => ({
  content: readContent(
    {
      name: 'S',
      questions: [{ id: 'q', type: 'nps', headline: 'Q' }],
      hiddenFields: { enabled: true, fieldIds },
    },
    null,
  ),
});
t.test('takes language and times out of answers if they have that shape', async (t) => {
  const none = { language: undefined, ttc: undefined };
  const sent = { data: { q: 'a', language: 'de', ttc: { q: 1 } } };
  t.strictSame(answersIn(sent, survey()), { data: { q: 'a' }, language: 'de', ttc: { q: 1 } });
  const fields = { language: 'fr', ttc: { q: 2 } };
  t.strictSame(
    answersIn({ ...sent, ...fields }, survey()),
    { data: { q: 'a' }, ...fields },
    'fields come first',
  );
  const others = { language: ['de'], ttc: { q: 'x' } };
  t.strictSame(answersIn({ data: others }, survey()), { data: others, ...none });
  const own = { language: 'Latin', ttc: 'soon' };
  t.strictSame(answersIn({ data: own }, survey('language', 'ttc')), { data: own, ...none });
});
