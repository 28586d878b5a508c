import t from 'tap';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t);
const path = '/api/v1/management/languages';
const send = (body: Record<string, unknown>) => api.manage('POST', path, { workspaceId, ...body });

t.test('POST 200: surveys can then use the language', async (t) => {
  await send({ code: 'pt-BR', alias: 'Brasil' });
  const survey = await addSurvey(api, { languages: [{ language: 'pt-BR', default: true, enabled: true }] });
  t.strictSame(survey.languages, [{ language: 'pt-BR', default: true, enabled: true }]);
});

t.test('POST 400 and 409: malformed and taken codes', async (t) => {
  for (const code of ['', 'd', 'German', 'de_', '12', 'de-'.repeat(9), 5]) {
    t.match((await send({ code })).json.details, { code: String }, String(code));
  }
  await send({ code: 'fr' });
  const again = await send({ code: 'fr' });
  t.equal(again.status, 409);
  t.equal(again.json.message, 'Language with code fr already exists');
});

t.test('DELETE 409 while a survey uses it, then 200', async (t) => {
  const { data } = (await send({ code: 'it' })).json;
  const survey = await addSurvey(api, { languages: [{ language: 'it' }] });
  const refused = await api.manage('DELETE', `${path}/${data.id}`);
  t.equal(refused.status, 409);
  await api.manage('DELETE', `/api/v1/management/surveys/${survey.id}`);
  t.strictSame((await api.manage('DELETE', `${path}/${data.id}`)).json, { data });
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
