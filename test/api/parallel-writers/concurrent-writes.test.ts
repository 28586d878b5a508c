/** Concurrent writes lose no change. */
import t from 'tap';
import { startApi, workspaceId } from '#test/support/api-app.ts';
import { column } from '#test/support/column.ts';

const api = await startApi(t);
const management = '/api/v1/management';

const made = async (path: string, body: object) =>
  (await api.manage('POST', `${management}/${path}`, { workspaceId, ...body })).json.data;

const resources: readonly (readonly [path: string, body: object, one: object, other: object])[] = [
  ['segments', { title: 'Both' }, { title: 'Changed' }, { description: 'changed' }],
  [
    'contact-attribute-keys',
    { key: 'both', type: 'custom' },
    { name: 'Changed' },
    { description: 'changed' },
  ],
];
for (const [path, body, one, other] of resources) {
  t.test(`${path}: two concurrent updates keep each other’s changes`, async (t) => {
    const { id } = await made(path, body);
    const url = `${management}/${path}/${id}`;
    const replies = await Promise.all([api.manage('PUT', url, one), api.manage('PUT', url, other)]);
    t.strictSame(column(replies, 'status'), [200, 200]);
    t.match((await api.manage('GET', url)).json.data, { ...one, ...other });
  });
}
