/** The pages on the wire format name existing routes and all question types. */
import t from 'tap';
import { questionShapes } from '#api/resources/surveys/question-types.ts';
import { surveyDefaults } from '#api/resources/surveys/schema.ts';
import { startApi } from '#test/support/api-app.ts';
import { readPage, tableOf } from './pages.ts';

/** Replaces the names of parameters, which differ between a page and the router. */
const anonymous = (path: string): string => path.replaceAll(/\{[^}]*\}/g, '{}');

t.test('routes exist', async (t) => {
  const { app } = await startApi(t);
  const { paths } = (await app.inject('/api/docs/openapi.json')).json();
  const known = new Set(
    Object.entries<object>(paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method.toUpperCase()} ${anonymous(path)}`),
    ),
  );
  for (const [file, head, prefix] of [
    ['client.md', 'Path', ''],
    ['management.md', 'Path, below `/api/v1/management`', '/api/v1/management'],
    ['v2-v3.md', 'Path', ''],
  ] as const) {
    const page = readPage(`api/compatibility/${file}`);
    for (const [methods = '', cell = ''] of allTables(page, head)) {
      const bases =
        cell === 'the same with `/{id}`' ? [] : [...cell.matchAll(/`([^`]+)`/g)].map(([, path]) => path);
      for (const path of bases) {
        for (const method of methods.split(', ')) {
          const route = `${method} ${anonymous(prefix + path)}`;
          t.ok(known.has(route), `${file}: ${route}`);
          if (cell.includes('also v2'))
            t.ok(known.has(route.replace('/v1/', '/v2/')), `${file}: ${route} on v2`);
        }
      }
    }
  }
});

/** Returns the rows of all route tables of a page. */
function allTables(page: ReturnType<typeof readPage>, head: string): readonly (readonly string[])[] {
  const parts = page.text.split(/^(?=\| Method \|)/m).slice(1);
  return parts.flatMap((text) => tableOf({ ...page, text }, 'Method', head));
}

t.test('the page lists every question type', async (t) => {
  const rows = tableOf(
    readPage('api/compatibility/surveys.md'),
    'Type',
    'Further fields (required ones in bold)',
  );
  const named = rows.flatMap(([cell = '']) => [...cell.matchAll(/`(\w+)`/g)].map(([, type]) => type));
  t.strictSame([...named].sort(), Object.keys(questionShapes).sort());
});

t.test('the page names every field of a survey', async (t) => {
  const { text } = readPage('api/compatibility/surveys.md');
  const named = new Set([...text.matchAll(/`(\w+)`/g)].map(([, name]) => name));
  // `overwrites` is the store's name of the field with three names.
  for (const field of Object.keys(surveyDefaults).filter((one) => one !== 'overwrites')) {
    t.ok(named.has(field), field);
  }
});
