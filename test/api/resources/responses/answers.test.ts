/** What a body says of answers, language and times. */
import t from 'tap';
import { changeIn, readTimes } from '#api/resources/responses/answers.ts';
import { readContent } from '#api/resources/surveys/content.ts';

t.test('times are at most a day, and summed at the end', async (t) => {
  t.strictSame(readTimes({ a: 1, b: 2, _total: 1 }, false), { a: 1, b: 2 });
  t.strictSame(readTimes({ a: 5, b: -2, c: 1e15, _total: 9 }, true), {
    a: 5,
    b: 0,
    c: 86_400_000,
    _total: 86_400_005,
  });
  t.strictSame(readTimes({}, true), {}, 'without times there is no sum');
});

const survey = (...fieldIds: string[]) => ({
  ...{ id: 's1', workspaceId: 'ws1', createdAt: '', updatedAt: '' },
  content: readContent(
    {
      name: 'S',
      questions: [{ id: 'q', type: 'nps', headline: 'Q' }],
      hiddenFields: { enabled: true, fieldIds },
    },
    null,
  ),
});
const read = (body: Parameters<typeof changeIn>[0], ...fieldIds: string[]) => {
  const { data, language, ttc } = changeIn(body, survey(...fieldIds), 'https://x.example');
  return { data, language, ttc };
};
t.test('takes language and times out of answers if they have that shape', async (t) => {
  const none = { language: undefined, ttc: undefined };
  const sent = { data: { q: 'a', language: 'de', ttc: { q: 1 } } };
  t.strictSame(read(sent), { data: { q: 'a' }, language: 'de', ttc: { q: 1 } });
  const fields = { language: 'fr', ttc: { q: 2 } };
  t.strictSame(read({ ...sent, ...fields }), { data: { q: 'a' }, ...fields }, 'fields come first');
  const others = { language: ['de'], ttc: { q: 'x' } };
  t.strictSame(read({ data: others }), { data: others, ...none });
  const own = { language: 'Latin', ttc: 'soon' };
  t.strictSame(read({ data: own }, 'language', 'ttc'), { data: own, ...none });
});
