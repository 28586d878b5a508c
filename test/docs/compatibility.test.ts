/** The pages on Formbricks clients name existing routes and all question types. */
import t from 'tap';
import { questionTypes } from '#api/resources/surveys/schema.ts';
import { startApi } from '#test/support/api-app.ts';
import { readPage, tableOf } from './pages.ts';

const client = readPage('test/api/compatibility/client.md');

t.test('routes exist', async (t) => {
  const { app } = await startApi(t);
  const { paths } = (await app.inject('/api/docs/openapi.json')).json();
  const routes = [...client.text.matchAll(/`(GET|POST|PUT)\s(\/api\/[^`]+)`/g)];
  t.equal(routes.length, 5);
  for (const [, method = '', path = ''] of routes)
    t.ok(paths[path]?.[method.toLowerCase()], `${method} ${path}`);
});

t.test('every question type has its answer', async (t) => {
  const rows = tableOf(client, 'Type of question', 'Answer');
  const named = rows.flatMap(([cell = '']) => [...cell.matchAll(/`(\w+)`/g)].map(([, type]) => type));
  t.strictSame([...named].sort(), Object.keys(questionTypes).sort());
});
