import t from 'tap';
import { insertLanguage } from '#api/resources/workspaces/store.ts';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t);
const { db, clock } = api.context;
const path = '/api/v1/management/languages';
await api.addWorkspace('ws2');
const now = new Date(clock()).toISOString();
const send = (body: Record<string, unknown>) => api.manage('POST', path, { workspaceId, ...body });

t.test('POST 200: surveys can then use the language', async (t) => {
  const reply = await send({ code: 'pt-BR', alias: 'Brasil' });
  t.equal(reply.status, 200);
  const { id } = reply.json.data;
  const row = {
    id,
    code: 'pt-BR',
    alias: 'Brasil',
    environmentId: workspaceId,
    workspaceId,
    createdAt: now,
    updatedAt: now,
  };
  t.strictSame(reply.json, { data: row });
  t.strictSame((await api.manage('GET', `${path}/${id}`)).json, { data: row });
  const survey = await addSurvey(api, { languages: [{ language: 'pt-BR', default: true, enabled: true }] });
  t.strictSame(survey.languages, [{ language: 'pt-BR', default: true, enabled: true }]);
});

t.test('GET list 200: by code, in all workspaces that the key can access', async (t) => {
  await send({ code: 'de' });
  await insertLanguage(db, {
    id: 'lf',
    workspaceId: 'ws2',
    code: 'aa',
    alias: null,
    createdAt: now,
    updatedAt: now,
  });
  const { data } = (await api.manage('GET', path)).json;
  t.strictSame(
    data.map(({ code }: { code: string }) => code),
    ['de', 'pt-BR'],
  );
  t.equal((await api.manage('GET', `${path}/lf`)).status, 401);
});

t.test('POST 400, 401 and 409: malformed and taken codes, and no access', async (t) => {
  for (const code of ['', 'd', 'German', 'de_', '12', 'de-'.repeat(9), 5]) {
    t.match((await send({ code })).json.details, { code: String }, String(code));
  }
  t.equal((await send({ code: 'fr', workspaceId: 'ws2' })).status, 401);
  await send({ code: 'fr' });
  const again = await send({ code: 'fr' });
  t.equal(again.status, 409);
  t.equal(again.json.message, 'Language with code fr already exists');
});

t.test('DELETE 200; 409 while a survey uses it; 404', async (t) => {
  const { data } = (await send({ code: 'it' })).json;
  const survey = await addSurvey(api, { languages: [{ language: 'it' }] });
  const refused = await api.manage('DELETE', `${path}/${data.id}`);
  t.equal(refused.status, 409);
  await api.manage('DELETE', `/api/v1/management/surveys/${survey.id}`);
  t.strictSame((await api.manage('DELETE', `${path}/${data.id}`)).json, { data });
  const gone = await api.manage('DELETE', `${path}/${data.id}`);
  t.equal(gone.status, 404);
  t.equal(gone.json.details.resource_type, 'Language');
});

t.test('POST 403: a workspace has at most 200', async (t) => {
  const fresh = await startApi(t);
  for (let i = 0; i < 200; i += 1) {
    const row = { id: `l${i}`, workspaceId, code: `x${i}`, alias: null, createdAt: now, updatedAt: now };
    await insertLanguage(fresh.context.db, row);
  }
  t.equal((await fresh.manage('POST', path, { workspaceId, code: 'de' })).status, 403);
});

t.test('POST 409: codes that differ in upper and lower case only are one language', async (t) => {
  t.equal((await send({ code: 'sv' })).status, 200);
  for (const code of ['SV', 'Sv', 'sv']) {
    const reply = await send({ code });
    t.equal(reply.status, 409, code);
    t.match(reply.json.message, `Language with code ${code} already exists`);
  }
  t.equal((await send({ code: 'sv-FI' })).status, 200);
});
