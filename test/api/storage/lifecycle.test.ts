/** Files from their grant to their deletion: owners, unused files, the quota, and crashes. */
import t, { type Test } from 'tap';
import { readConfig } from '#api/config.ts';
import { claimFilesIn } from '#api/storage/claims.ts';
import { sweepFiles, usedBytes } from '#api/storage/files.ts';
import { type Storage, StorageUnavailable } from '#api/storage/storage.ts';
import { addSurvey, publicUrl, startApi, workspaceId } from '#test/support/api-app.ts';
import { addFileRow, receiveFile } from '#test/support/files.ts';
import { planOf, queriesOf } from '#test/support/query-plan.ts';
import { post } from './conformance.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const MIB = 1_048_576;

interface Granted {
  readonly key: string;
  readonly url: string;
  readonly fields: Readonly<Record<string, string>>;
}

async function begin(
  t: Test,
  env: Record<string, string> = {},
  wrap?: (storage: Storage) => Partial<Storage>,
) {
  const api = await startApi(t, {
    env,
    ...(wrap ? { parts: ({ storage }) => ({ storage: { ...storage, ...wrap(storage) } }) } : {}),
  });
  const address = await api.app.listen({ port: 0, host: '127.0.0.1' });
  const { db, storage } = api.context;
  const questions = [{ id: 'q1', type: 'fileUpload', headline: { default: 'x' }, allowMultipleFiles: true }];
  const survey = await addSurvey(api, { questions });
  const surveyId = String(survey.id);
  const granted = (data: { presignedFields: Record<string, string>; fileUrl: string }): Granted => ({
    key: data.presignedFields.key ?? '',
    url: data.fileUrl,
    fields: data.presignedFields,
  });
  const ask = (element: object = { elementId: 'q1' }) =>
    api.client('POST', `/api/v1/client/${workspaceId}/storage`, {
      ...{ fileName: 'a (1).png', fileType: 'image/png', surveyId },
      ...element,
    });
  const askPublic = () =>
    api.manage('POST', '/api/v1/management/storage', {
      ...{ workspaceId, fileName: 'logo (2).png', fileType: 'image/png' },
    });
  return {
    api,
    db,
    surveyId,
    questions,
    ask,
    askPublic,
    grant: async (element?: object) => granted((await ask(element)).json.data),
    grantPublic: async () => granted((await askPublic()).json.data),
    /** Uploads through the API's own target. */
    upload: ({ fields }: Granted, bytes = 1) =>
      post(
        { url: `${address}/api/v1/client/${workspaceId}/storage/upload`, fields },
        Buffer.alloc(bytes, 'x'),
      ),
    isThere: async ({ key }: Granted): Promise<boolean> => (await storage.find(key)) !== null,
    rows: () => db.selectFrom('files').selectAll().orderBy('key').execute(),
    async sweepAfter(ms: number): Promise<void> {
      api.advance(ms);
      await sweepFiles(api.context);
    },
    /** Creates a response that names these files. @returns its id */
    async respond(files: readonly string[], answered = surveyId): Promise<string> {
      const body = { surveyId: answered, finished: true, data: { q1: files } };
      const reply = await api.client('POST', `/api/v1/client/${workspaceId}/responses`, body);
      if (reply.status !== 200) throw new Error(reply.text);
      return reply.json.data.id;
    },
    deleteSurvey: () => api.manage('DELETE', `/api/v1/management/surveys/${surveyId}`),
  };
}

t.test('deletes an upload that no response names within a day, and keeps a named one', async (t) => {
  const { api, grant, grantPublic, upload, questions, respond, isThere, sweepAfter } = await begin(t);
  const [named, unnamed, late, inOther] = [await grant(), await grant(), await grant(), await grant({})];
  const logo = await grantPublic();
  const all = [named, unnamed, late, inOther, logo];
  for (const file of all) t.equal((await upload(file)).status, 201);
  await respond([named.url]);
  const { id } = await addSurvey(api, { questions });
  await respond([inOther.url, logo.url], String(id));
  await sweepAfter(DAY);
  t.ok(await isThere(unnamed), 'the file exists until its time is over');
  await respond([late.url.slice(publicUrl.length)]);
  await sweepAfter(1);
  t.same(await Promise.all(all.map(isThere)), [true, false, true, true, true]);
  t.equal(await usedBytes(api.context.db), 4);
});

t.test('keeps a picture that a survey shows, in any field, also in another workspace', async (t) => {
  const { api, grantPublic, upload, isThere, sweepAfter } = await begin(t);
  await api.addWorkspace('ws2');
  const key = await api.addKey({ ws2: 'manage' });
  const files = [];
  for (let i = 0; i < 6; i += 1) files.push(await grantPublic());
  for (const file of files) t.equal((await upload(file)).status, 201);
  const [image, html, updated, copied, environment, unused] = files;
  if (!image || !html || !updated || !copied || !environment || !unused) throw new Error('six files');
  const survey = await addSurvey(api, {
    welcomeCard: {
      enabled: true,
      headline: { default: 'Hello' },
      fileUrl: image.url,
      html: { default: `<p><img src="${html.url}"></p>` },
    },
    questions: [
      {
        ...{ id: 'q1', type: 'openText', headline: { default: 'What?' } },
        imageUrl: environment.url.replace(publicUrl, 'https://other.example'),
      },
    ],
  });
  const change = await api.manage('PUT', `/api/v1/management/surveys/${survey.id}`, {
    styling: { background: { bg: `url(${updated.url})`, bgType: 'image' } },
  });
  t.equal(change.status, 200, change.text);
  const other = await api.client(
    'POST',
    '/api/v1/management/surveys',
    {
      ...{ workspaceId: 'ws2', name: 'Copy' },
      questions: [{ id: 'q1', type: 'openText', headline: { default: 'What?' }, imageUrl: copied.url }],
    },
    { 'x-api-key': key },
  );
  t.equal(other.status, 200, other.text);
  await sweepAfter(DAY + 1);
  t.same(await Promise.all(files.map(isThere)), [true, true, true, true, true, false]);
  await api.manage('DELETE', `/api/v1/management/surveys/${survey.id}`);
  await sweepAfter(DAY);
  t.ok(await isThere(image), 'a picture that another survey may show is kept');
});

t.test('a response is deleted with the files that it named first, and a survey with all', async (t) => {
  const { api, grant, grantPublic, upload, respond, isThere, deleteSurvey, surveyId, rows, sweepAfter } =
    await begin(t);
  const all: Granted[] = [];
  for (let i = 0; i < 5; i += 1) all.push(await grant());
  all.push(await grantPublic());
  const [mine, old, updated, theirs, unsent, logo] = all;
  if (!mine || !old || !updated || !theirs || !unsent || !logo) throw new Error('six files');
  for (const file of all) t.equal((await upload(file)).status, 201);
  await respond([theirs.url]);
  const named = [mine.url, old.url.slice(publicUrl.length), theirs.url, logo.url];
  const start = { surveyId, finished: false, data: { q1: named } };
  const { id } = (await api.client('POST', `/api/v1/client/${workspaceId}/responses`, start)).json.data;
  const update = { finished: true, data: { q1: [updated.url] } };
  t.equal((await api.client('PUT', `/api/v1/client/${workspaceId}/responses/${id}`, update)).status, 200);
  const read = async () =>
    Promise.all(all.map(async ({ url }) => (await api.manage('GET', url.slice(publicUrl.length))).status));

  t.equal((await api.manage('DELETE', `/api/v1/management/responses/${id}`)).status, 200);
  t.same(await read(), [404, 404, 404, 200, 200, 200], 'at once for everybody');
  t.ok(await isThere(mine), 'an upload with its grant may still be running');
  await sweepAfter(HOUR + 1);
  t.same(await Promise.all(all.map(isThere)), [false, false, false, true, true, true]);
  t.equal((await deleteSurvey()).status, 200);
  await sweepAfter(0);
  t.same(await Promise.all(all.map(isThere)), [false, false, false, false, false, true]);
  t.match(await rows(), [{ key: logo.key }]);
});

t.test('the sweep goes on when the store is back, until nothing is left', async (t) => {
  let isAway = true;
  const { db, grant, upload, isThere, deleteSurvey, sweepAfter, rows } = await begin(t, {}, (storage) => ({
    async delete(key) {
      if (isAway) throw new StorageUnavailable('s3_client_error', 'S3 is away');
      await storage.delete(key);
    },
  }));
  const files = [];
  for (let i = 0; i < 20; i += 1) files.push(await grant());
  for (const file of files) await upload(file);
  t.equal((await deleteSurvey()).status, 200);
  await t.rejects(sweepAfter(HOUR + 1), StorageUnavailable);
  t.equal(await usedBytes(db), 0, 'the room is free nevertheless');
  isAway = false;
  await sweepAfter(0);
  t.strictSame(await rows(), []);
  for (const file of files) t.notOk(await isThere(file));
});

t.test('413: a workspace over its quota gets no grant; deleting files frees room', async (t) => {
  const { api, ask, askPublic, grant, upload, db } = await begin(t, { STORAGE_TOTAL_MIB: '250' });
  await api.addWorkspace('ws2');
  const key = await api.addKey({ ws2: 'manage' });
  await addFileRow(api, `${workspaceId}/public/large.png`, { size: 14 * MIB });
  const granted = [await grant(), await grant()];
  for (const file of granted) t.equal((await upload(file, MIB)).status, 201);
  const refused = await ask();
  t.equal(refused.status, 413, refused.text);
  t.match(refused.json, {
    code: 'payload_too_large',
    message: /This workspace has no room .*Delete files/,
    details: { error: /no room/ },
  });
  t.equal(refused.headers['access-control-allow-origin'], '*');
  t.equal((await askPublic()).status, 200, 'five MiB still fit');
  const body = { workspaceId: 'ws2', fileName: 'a.png', fileType: 'image/png' };
  const elsewhere = await api.client('POST', '/api/v1/management/storage', body, { 'x-api-key': key });
  t.equal(elsewhere.status, 200, 'another workspace has its own quota');
  t.equal((await api.manage('DELETE', `/storage/${workspaceId}/public/large.png`)).status, 200);
  const late = await grant();
  await addFileRow(api, `${workspaceId}/public/other.png`, { size: 22 * MIB });
  t.equal((await upload(late, 2 * MIB)).status, 413, 'an upload must fit too');
  t.equal(await usedBytes(db, workspaceId), 24 * MIB);
});

t.test('413: the quota of all workspaces together; 0 means no limits', async (t) => {
  const { api, ask } = await begin(t, { STORAGE_TOTAL_MIB: '120' });
  for (let i = 0; i < 10; i += 1) await addFileRow(api, `other${i}/public/a.png`, { size: 11 * MIB });
  t.equal((await ask()).status, 200, 'ten of the last ten MiB');
  await addFileRow(api, 'last/public/a.png', { size: 1 });
  t.match(await ask(), { status: 413, json: { message: /This service has no room .*operator/ } });
  t.equal(readConfig({ STORAGE_TOTAL_MIB: '0' }, '/').config.storageBytesMax, null);
});

t.test('403: a grant stores nothing after its row or file was deleted', async (t) => {
  const { db, grant, upload, isThere, deleteSurvey } = await begin(t);
  const [lost, deleted] = [await grant(), await grant()];
  await db.deleteFrom('files').where('key', '=', lost.key).execute();
  t.match(await upload(lost), { status: 403, text: /Ask for a new grant/ });
  t.equal((await deleteSurvey()).status, 200);
  t.equal((await upload(deleted)).status, 403);
  t.same([await isThere(lost), await isThere(deleted)], [false, false]);
});

t.test('a file that is deleted during its upload, or sent again to a bucket, leaves nothing', async (t) => {
  let arrived = async (): Promise<unknown> => undefined;
  const { api, grant, upload, deleteSurvey, isThere, sweepAfter, rows } = await begin(t, {}, (storage) => ({
    async put(object, file) {
      await storage.put(object, file);
      await arrived();
    },
  }));
  const [file, again] = [await grant(), await grant()];
  t.equal((await upload(again)).status, 201);
  arrived = deleteSurvey;
  t.match(await upload(file), { status: 403, text: /was deleted/ });
  await receiveFile(api, again.key, 'again');
  await sweepAfter(HOUR + 1);
  t.same([await isThere(file), await isThere(again), await rows()], [false, false, []]);
});

t.test('a crash between file and row leaks neither, and an unused grant goes after an hour', async (t) => {
  let crash = true;
  const { db, grant, upload, isThere, rows, sweepAfter } = await begin(t, {}, (storage) => ({
    async put(object, file) {
      await storage.put(object, file);
      if (crash) throw new Error('killed here');
    },
  }));
  const [unnoted] = [await grant(), await grant()];
  t.equal((await upload(unnoted, 7)).status, 500, 'the object exists, but its row is not updated');
  crash = false;
  await sweepAfter(HOUR + 1);
  t.match(await rows(), [{ key: unnoted.key, size: 7 }]);
  t.equal(await usedBytes(db), 7, 'as after an upload to a bucket');
  await sweepAfter(DAY);
  t.same([await isThere(unnoted), await rows()], [false, []]);
});

t.test('the sweep finds its files by indexes, with any number of files', async (t) => {
  const { api, db } = await begin(t);
  const queries = await queriesOf(db, (recorded) => sweepFiles({ ...api.context, db: recorded }));
  t.equal(queries.length, 3);
  for (const [i, index] of [/files_unclaimed/, /files_unknown/, /files_removed/].entries()) {
    const query = queries[i];
    const plan = query ? (await planOf(db, query)).join('\n') : '';
    t.match(plan, index);
    t.notMatch(plan, /TEMP B-TREE/);
  }
});

t.test('searches a text full of partial addresses quickly', async (t) => {
  const { db } = await begin(t);
  const text =
    '/storage/a/public/x--fid--'.repeat(40_000) + '/storage/a/public/'.repeat(40_000) + 'y'.repeat(100_000);
  t.same(await claimFilesIn(db, { workspaceId, text, now: 'x' }), [], 'no address is found');
});
