import t from 'tap';
import { apiKey, startApi } from '#test/support/api-app.ts';
import { until } from '#test/support/until.ts';

const api = await startApi(t);
const status = async (headers: Record<string, string>): Promise<number> =>
  (await api.client('GET', '/api/v1/me', undefined, headers)).status;

const cases: readonly (readonly [name: string, headers: Record<string, string>, expected: number])[] = [
  ['the key', { 'x-api-key': apiKey }, 200],
  ['the header’s name in capitals', { 'X-API-KEY': apiKey }, 200],
  ['spaces around the key', { 'x-api-key': `  ${apiKey} ` }, 200],
  ['a Bearer token', { authorization: `Bearer ${apiKey}` }, 200],
  ['a Bearer token in small letters', { authorization: `bearer ${apiKey}` }, 200],
  ['nothing', {}, 401],
  ['a blank key', { 'x-api-key': '  ' }, 401],
  ['a blank key beside a Bearer token', { 'x-api-key': ' ', authorization: `Bearer ${apiKey}` }, 200],
  ['another key', { 'x-api-key': `${apiKey}x` }, 401],
  ['a wrong key beside a right token', { 'x-api-key': 'x', authorization: `Bearer ${apiKey}` }, 401],
  ['a token of another kind', { authorization: 'Bearer eyJhbGciOi' }, 401],
  ['Basic credentials', { authorization: `Basic ${apiKey}` }, 401],
  ['a key without end', { 'x-api-key': 'x'.repeat(10_000) }, 401],
  ['the same key twice', { 'x-api-key': `${apiKey},${apiKey}` }, 401],
];
for (const [name, headers, expected] of cases) {
  t.test(`${expected}: ${name}`, async (t) => {
    t.equal(await status(headers), expected);
  });
}

t.test('401: a key without workspaces counts as no key', async (t) => {
  const key = await api.addKey({});
  const reply = await api.client('GET', '/api/v1/management/responses', undefined, { 'x-api-key': key });
  t.equal(reply.status, 401);
  t.equal(reply.json.code, 'not_authenticated');
});

t.test('writes lastUsedAt at most every 30 seconds', async (t) => {
  const fresh = await startApi(t);
  // No reply waits for the write.
  const hasStored = (at: number) => async (): Promise<boolean> => {
    await fresh.manage('GET', '/api/v1/me');
    const row = await fresh.context.db.selectFrom('apiKeys').select('lastUsedAt').executeTakeFirstOrThrow();
    return row.lastUsedAt === new Date(at).toISOString();
  };
  const first = fresh.context.clock();
  await until(hasStored(first), 'the first use is stored');
  fresh.advance(29_999);
  t.equal(await hasStored(first)(), true);
  fresh.advance(1);
  // A use that was stored a millisecond ago would keep this one from being stored.
  await until(hasStored(first + 30_000), 'the use half a minute later is stored');
});
