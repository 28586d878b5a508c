/** Credentials and rights that are withdrawn during a request no longer count at its end. */
import { Readable } from 'node:stream';
import type { InjectOptions } from 'fastify';
import t from 'tap';
import type { SessionPrincipal } from '#api/auth/principal.ts';
import type { Permission } from '#api/db/schema.ts';
import { createApiKey, revokeApiKey } from '#api/resources/api-keys/store.ts';
import { startApi, surveyBody, workspaceId } from '#test/support/api-app.ts';
import type { Json } from '#test/support/json.ts';
import { addPerson, firstOrganization } from '#test/support/people.ts';

const api = await startApi(t, { env: { AUDIT_LOG_ENABLED: '1' } });
const { db } = api.context;
const surveysUrl = '/api/v1/management/surveys';
/** No sender takes this long for a body. */
const SLOW = 60_000;

interface Slow {
  readonly method: NonNullable<InjectOptions['method']>;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** Sends the first half of a body, waits for `meanwhile`, and sends the rest after `ms`. */
async function send(
  { body, ...rest }: Slow,
  meanwhile: () => Promise<unknown>,
  ms = SLOW,
): Promise<{ readonly status: number; readonly json: Json }> {
  const text = JSON.stringify(body);
  const half = Math.floor(text.length / 2);
  async function* halves() {
    yield Buffer.from(text.slice(0, half));
    await meanwhile();
    api.advance(ms);
    yield Buffer.from(text.slice(half));
  }
  const headers = { ...rest.headers, 'content-length': String(Buffer.byteLength(text)) };
  const reply = await api.app.inject({ ...rest, headers, payload: Readable.from(halves()) });
  return { status: reply.statusCode, json: reply.json() };
}

const withKey = (key: string): Readonly<Record<string, string>> => ({ 'x-api-key': key });
const newSurvey = (key: string): Slow => ({
  method: 'POST',
  url: surveysUrl,
  headers: withKey(key),
  body: surveyBody({ name: key }),
});
const hashOf = (key: string) =>
  db.selectFrom('apiKeys').select('id').where('id', '=', key.slice('fbk_'.length));
const permit = (key: string, permission: Permission) =>
  db.updateTable('apiKeyPermissions').set({ permission }).where('apiKeyId', 'in', hashOf(key)).execute();
const countSurveys = async (name: string): Promise<number> =>
  (await db.selectFrom('surveys').select('id').where('name', '=', name).execute()).length;

t.test('200: a slow request whose sender still has the right', async (t) => {
  const key = await api.addKey({ [workspaceId]: 'write' });
  t.equal((await send(newSurvey(key), async () => {})).status, 200);
  t.equal((await send(newSurvey(key), () => permit(key, 'manage'))).status, 200, 'or with more rights');
});

t.test('401: the key was revoked while the body arrived', async (t) => {
  const key = await api.addKey({ [workspaceId]: 'manage' });
  const { status, json } = await send(newSurvey(key), () =>
    db.deleteFrom('apiKeys').where('id', 'in', hashOf(key)).execute(),
  );
  t.equal(status, 401);
  t.equal(json.code, 'not_authenticated');
  t.equal(await countSurveys(key), 0);
});

t.test('401: the key lost rights while the body arrived', async (t) => {
  const key = await api.addKey({ [workspaceId]: 'manage' });
  const created = await send(newSurvey(key), () => permit(key, 'read'));
  t.equal(created.status, 401);
  t.equal(created.json.code, 'unauthorized');
  t.equal(await countSurveys(key), 0);
});

/** Logs in a manager of the first organization. */
async function manager(name: string): Promise<{ id: string; survey: Slow }> {
  const { browser, id } = await addPerson(api, name, 'manager');
  const cookie = [...browser.cookies].map(([one, value]) => `${one}=${value}`).join('; ');
  return { id, survey: { ...newSurvey(name), headers: { cookie } } };
}

t.test('401: the session was ended while the body arrived', async (t) => {
  const { id, survey } = await manager('Ann');
  const { status } = await send(survey, () => db.deleteFrom('sessions').where('userId', '=', id).execute());
  t.equal(status, 401);
  t.equal(await countSurveys('Ann'), 0);
});

t.test('401: the role was removed while the body arrived', async (t) => {
  const { id, survey } = await manager('Ben');
  const { status } = await send(survey, () =>
    db.updateTable('memberships').set({ role: 'member' }).where('userId', '=', id).execute(),
  );
  t.equal(status, 401);
  t.equal(await countSurveys('Ben'), 0);
});

t.test('a manager who was removed at the last moment makes and revokes no key', async (t) => {
  const { id: userId } = await manager('Cid');
  const organizationId = await firstOrganization(api);
  const before: SessionPrincipal = {
    kind: 'session',
    userId,
    organizationIds: [organizationId],
    permissions: new Map([[workspaceId, 'manage']]),
  };
  await db.deleteFrom('memberships').where('userId', '=', userId).execute();
  const wanted = { organizationId, label: 'Late', workspaceId, permission: 'read' } as const;
  await t.rejects(createApiKey(api.context, before, wanted), { code: 'unauthorized' });
  const { id } = await db.selectFrom('apiKeys').select('id').executeTakeFirstOrThrow();
  t.equal(await revokeApiKey(db, before, id), false);
  t.strictSame(await db.selectFrom('apiKeys').select('id').where('label', '=', 'Late').execute(), []);
});
