/** Files from their grant to their deletion: owners, unused files, the quota, and crashes. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import t, { type Test } from 'tap';
import { readConfig } from '#api/config.ts';
import { startScheduledJobs } from '#api/jobs/scheduled-jobs.ts';
import { claimFilesIn } from '#api/storage/claims.ts';
import { usedBytes } from '#api/storage/quota.ts';
import {
  removedFiles,
  removeFilesOf,
  sweepFiles,
  unclaimedFiles,
  unsettledFiles,
} from '#api/storage/removal.ts';
import { type Storage, StorageUnavailable } from '#api/storage/storage.ts';
import { addSurvey, publicUrl, startApi, workspaceId } from '#test/support/api-app.ts';
import { addFileRow, receiveFile } from '#test/support/files.ts';
import { planOf } from '#test/support/query-plan.ts';
import { post } from './conformance.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
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
  const { db, storage, config } = api.context;
  const survey = await addSurvey(api, {
    questions: [{ id: 'q1', type: 'fileUpload', headline: { default: 'x' }, allowMultipleFiles: true }],
  });
  const surveyId = String(survey.id);
  const granted = (data: { presignedFields: Record<string, string>; fileUrl: string }): Granted => ({
    key: data.presignedFields.key ?? '',
    url: data.fileUrl,
    fields: data.presignedFields,
  });
  const ask = (scope = workspaceId) =>
    api.client('POST', `/api/v1/client/${scope}/storage`, {
      ...{ fileName: 'a (1).png', fileType: 'image/png', surveyId, elementId: 'q1' },
    });
  const askPublic = (body: object = {}) =>
    api.manage('POST', '/api/v1/management/storage', {
      ...{ workspaceId, fileName: 'logo (2).png', fileType: 'image/png' },
      ...body,
    });
  return {
    api,
    db,
    surveyId,
    ask,
    askPublic,
    grant: async () => granted((await ask()).json.data),
    grantPublic: async () => granted((await askPublic()).json.data),
    /** Uploads through the API's own target. */
    upload: ({ fields }: Granted, bytes = 1) =>
      post(
        { url: `${address}/api/v1/client/${workspaceId}/storage/upload`, fields },
        Buffer.alloc(bytes, 'x'),
      ),
    isThere: async ({ key }: Granted): Promise<boolean> => (await storage.find(key)) !== null,
    row: ({ key }: Granted) => db.selectFrom('files').selectAll().where('key', '=', key).executeTakeFirst(),
    used: () => usedBytes(db),
    objects: (): number =>
      config.storage.kind !== 'disk'
        ? 0
        : readdirSync(join(config.storage.path, 'objects'), { recursive: true, withFileTypes: true }).filter(
            (entry) => entry.isFile(),
          ).length,
    /** Creates a response that names these files. @returns its id */
    async respond(files: readonly string[]): Promise<string> {
      const body = { surveyId, finished: true, data: { q1: files } };
      const reply = await api.client('POST', `/api/v1/client/${workspaceId}/responses`, body);
      if (reply.status !== 200) throw new Error(reply.text);
      return reply.json.data.id;
    },
    deleteResponse: (id: string) => api.manage('DELETE', `/api/v1/management/responses/${id}`),
    deleteSurvey: () => api.manage('DELETE', `/api/v1/management/surveys/${surveyId}`),
  };
}

t.test('deletes an upload that no response names within a day, and keeps a named one', async (t) => {
  const { api, grant, upload, respond, isThere, row, used } = await begin(t);
  const [named, unnamed, late] = [await grant(), await grant(), await grant()];
  for (const file of [named, unnamed, late]) t.equal((await upload(file)).status, 201);
  await respond([named.url]);
  api.advance(DAY);
  await sweepFiles(api.context);
  t.ok(await isThere(unnamed), 'the file exists until its time is over');
  await respond([late.url.slice(publicUrl.length)]);
  api.advance(1);
  await sweepFiles(api.context);
  t.same([await isThere(named), await isThere(unnamed), await isThere(late)], [true, false, true]);
  t.equal(await row(unnamed), undefined);
  t.equal(await used(), 2);
});

t.test('keeps a picture that a survey shows, in any field, also in another workspace', async (t) => {
  const { api, grantPublic, upload, isThere } = await begin(t);
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
  api.advance(DAY + 1);
  await sweepFiles(api.context);
  const kept = [];
  for (const file of files) kept.push(await isThere(file));
  t.same(kept, [true, true, true, true, true, false]);
  await api.manage('DELETE', `/api/v1/management/surveys/${survey.id}`);
  api.advance(DAY);
  await sweepFiles(api.context);
  t.ok(await isThere(image), 'a picture that another survey may show is kept');
});

t.test('keeps a file that an answer in another survey or a public answer names', async (t) => {
  const { api, grant, grantPublic, upload, isThere, surveyId } = await begin(t);
  const old = await api.client('POST', `/api/v1/client/${workspaceId}/storage`, {
    ...{ fileName: 'a.png', fileType: 'image/png', surveyId },
  });
  const { presignedFields, fileUrl } = old.json.data;
  const mine: Granted = { key: presignedFields.key, fields: presignedFields, url: fileUrl };
  const [logo, unused] = [await grantPublic(), await grant()];
  for (const file of [mine, logo, unused]) t.equal((await upload(file)).status, 201);
  const other = await addSurvey(api, {
    questions: [{ id: 'q1', type: 'fileUpload', headline: { default: 'x' }, allowMultipleFiles: true }],
  });
  const answer = { surveyId: other.id, finished: true, data: { q1: [mine.url, logo.url] } };
  const reply = await api.client('POST', `/api/v1/client/${workspaceId}/responses`, answer);
  t.equal(reply.status, 200, reply.text);
  api.advance(DAY + 1);
  await sweepFiles(api.context);
  t.same([await isThere(mine), await isThere(logo), await isThere(unused)], [true, true, false]);
});

t.test('a response is deleted with the files that it named first, and a survey with all', async (t) => {
  const { api, grant, grantPublic, upload, respond, isThere, deleteResponse, deleteSurvey, db, surveyId } =
    await begin(t);
  const [mine, old, updated, theirs, unsent, logo] = [
    await grant(),
    await grant(),
    await grant(),
    await grant(),
    await grant(),
    await grantPublic(),
  ];
  const all = [mine, old, updated, theirs, unsent, logo];
  for (const file of all) t.equal((await upload(file)).status, 201);
  const there = async () => Promise.all(all.map(isThere));
  await respond([theirs.url]);
  const named = [mine.url, old.url.slice(publicUrl.length), theirs.url, logo.url];
  const start = { surveyId, finished: false, data: { q1: named } };
  const { id } = (await api.client('POST', `/api/v1/client/${workspaceId}/responses`, start)).json.data;
  const update = { finished: true, data: { q1: [updated.url] } };
  t.equal((await api.client('PUT', `/api/v1/client/${workspaceId}/responses/${id}`, update)).status, 200);
  t.equal((await deleteResponse(id)).status, 200);
  t.same(await there(), [false, false, false, true, true, true]);
  t.equal((await deleteSurvey()).status, 200);
  t.same(await there(), [false, false, false, false, false, true], 'also a file that was never sent');
  t.equal((await db.selectFrom('files').select('key').where('removedAt', 'is', null).execute()).length, 1);
});

t.test('an unavailable store delays no caller: it is logged, and the next sweep deletes', async (t) => {
  let isAway = true;
  const { api, db, grant, upload, respond, deleteResponse, objects } = await begin(t, {}, (storage) => ({
    async delete(key) {
      if (isAway) throw new StorageUnavailable('s3_client_error', 'S3 is away');
      await storage.delete(key);
    },
  }));
  const files = [await grant(), await grant(), await grant()];
  for (const file of files) await upload(file);
  const responseId = await respond(files.map(({ url }) => url));
  t.equal((await deleteResponse(responseId)).status, 200);
  const lines: string[] = [];
  const log = { error: (_: object, message: string) => void lines.push(message) };
  await removeFilesOf(api.context, { responseId }, log);
  t.match(lines, [/next sweep/]);
  await t.rejects(sweepFiles(api.context), StorageUnavailable);
  t.equal(objects(), 3);
  isAway = false;
  await sweepFiles(api.context, () => false, 2);
  t.equal(objects(), 0, 'it goes on until nothing is left');
  api.advance(HOUR + 1);
  await sweepFiles(api.context);
  t.same(await db.selectFrom('files').selectAll().execute(), [], 'no upload can be in progress any more');
});

t.test('the scheduled sweep begins at once, and its error tells the operator what to do', async (t) => {
  const { api } = await begin(t, {}, () => ({
    async delete() {
      throw new StorageUnavailable('s3_client_error', 'S3 is away, do this');
    },
  }));
  await addFileRow(api, 'gone/public/a.png', { storedAt: 'x', createdAt: '2025' });
  const lines: string[] = [];
  const log = pino({ level: 'error' }, { write: (line: string) => void lines.push(JSON.parse(line).msg) });
  await startScheduledJobs(api.context, log).stop();
  t.strictSame(lines, ['S3 is away, do this']);
});

t.test('413: a workspace over its quota gets no grant; deleting files frees room', async (t) => {
  const { api, ask, askPublic, grant, upload, used, db } = await begin(t, { STORAGE_TOTAL_MIB: '250' });
  await api.addWorkspace('ws2');
  const key = await api.addKey({ ws2: 'manage' });
  const [first] = [await grant(), await grant()];
  t.equal(await used(), 20 * MIB, 'two grants of ten MiB are counted');
  const refused = await ask();
  t.equal(refused.status, 413, refused.text);
  t.match(refused.json, {
    code: 'payload_too_large',
    message: /This workspace has no room .*Delete files/,
    details: { error: /no room/ },
  });
  t.equal(refused.headers['access-control-allow-origin'], '*');
  t.equal((await askPublic()).status, 200, 'five MiB still fit');
  t.equal((await askPublic()).status, 413);
  const body = { workspaceId: 'ws2', fileName: 'a.png', fileType: 'image/png' };
  const elsewhere = await api.client('POST', '/api/v1/management/storage', body, { 'x-api-key': key });
  t.equal(elsewhere.status, 200, 'another workspace has its own quota');

  t.equal((await upload(first, 1_000)).status, 201);
  t.equal(await usedBytes(db, workspaceId), 15 * MIB + 1_000, 'stored files count by their size');
  api.advance(10 * MINUTE + 1);
  await sweepFiles(api.context);
  t.equal(await used(), 1_000, 'expired grants are not counted any more');
  t.equal((await api.manage('DELETE', first.url.slice(publicUrl.length))).status, 200);
  t.equal(await used(), 0, 'a deleted file is not counted any more');
  api.advance(HOUR);
  await sweepFiles(api.context);
  t.same(await db.selectFrom('files').selectAll().execute(), [], 'unused grants are deleted after an hour');
});

t.test('413: the quota of all workspaces together', async (t) => {
  const { api, ask } = await begin(t, { STORAGE_TOTAL_MIB: '120' });
  for (let i = 0; i < 10; i += 1) await addFileRow(api, `other${i}/public/a.png`, { countedBytes: 11 * MIB });
  await api.addWorkspace('ws2');
  t.equal((await ask()).status, 200, 'ten of the last ten MiB');
  const key = await api.addKey({ ws2: 'manage' });
  const body = { workspaceId: 'ws2', fileName: 'a.png', fileType: 'image/png' };
  const refused = await api.client('POST', '/api/v1/management/storage', body, { 'x-api-key': key });
  t.equal(refused.status, 413);
  t.match(refused.json, { message: /This service has no room .*operator/ });
});

t.test('a quota of 0 means no limits, and the defaults are 100 GiB and a tenth of it', async (t) => {
  const { config } = readConfig({ STORAGE_TOTAL_MIB: '0' }, '/');
  t.same(config.storageQuota, { workspaceBytesMax: null, totalBytesMax: null });
  t.same(readConfig({}, '/').config.storageQuota, {
    workspaceBytesMax: 10_240 * MIB,
    totalBytesMax: 102_400 * MIB,
  });
});

t.test('403: a grant stores nothing after its row or file was deleted', async (t) => {
  const { db, grant, upload, objects, deleteSurvey } = await begin(t);
  const [lost, deleted] = [await grant(), await grant()];
  await db.deleteFrom('files').where('key', '=', lost.key).execute();
  t.match(await upload(lost), { status: 403, text: /AccessDenied.*Ask for a new grant/ });
  t.equal((await deleteSurvey()).status, 200);
  t.match(await upload(deleted), { status: 403, text: /AccessDenied/ });
  t.equal(objects(), 0);
});

t.test('a file that is deleted during its upload leaves nothing', async (t) => {
  let arrived = async (): Promise<unknown> => undefined;
  const { api, db, grant, upload, objects, deleteSurvey, used } = await begin(t, {}, (storage) => ({
    async receive(object, file) {
      const received = await storage.receive?.(object, file);
      await arrived();
      return received ?? { kind: 'tooLarge' };
    },
  }));
  const file = await grant();
  arrived = deleteSurvey;
  t.match(await upload(file), { status: 403, text: /was deleted/ });
  t.equal(objects(), 0);
  t.equal(await used(), 0);
  api.advance(HOUR + 1);
  await sweepFiles(api.context);
  t.same(await db.selectFrom('files').selectAll().execute(), []);
});

t.test('a crash between file and row leaks neither', async (t) => {
  let crash = false;
  const { api, db, grant, upload, objects, isThere, row, used } = await begin(t, {}, (storage) => ({
    async receive(object, file) {
      const received = await storage.receive?.(object, file);
      if (crash) throw new Error('killed here');
      return received ?? { kind: 'tooLarge' };
    },
    async delete(key) {
      if (crash) throw new Error('killed here');
      await storage.delete(key);
    },
  }));
  const [unnoted, gone, halfDeleted] = [await grant(), await grant(), await grant()];
  t.equal((await upload(halfDeleted, 5)).status, 201);
  crash = true;
  t.equal((await upload(unnoted, 7)).status, 503, 'the object exists, but its row is not updated');
  t.equal((await upload(gone, 7)).status, 503);
  for (const file of [gone, halfDeleted]) {
    await api.manage('DELETE', file.url.slice(publicUrl.length));
  }
  t.equal(objects(), 3);
  crash = false;

  api.advance(10 * MINUTE + 1);
  await sweepFiles(api.context);
  t.match(await row(unnoted), { size: 7, storedAt: String, countedBytes: 7 });
  t.same([await isThere(gone), await isThere(halfDeleted)], [false, false]);
  t.equal(await used(), 7);
  api.advance(DAY);
  await sweepFiles(api.context);
  t.same([objects(), await db.selectFrom('files').selectAll().execute()], [0, []]);
  t.equal(await used(), 0);
});

t.test('deletes a file that a bucket accepted after its deletion', async (t) => {
  const { api, grant, upload, isThere, row } = await begin(t);
  const file = await grant();
  t.equal((await upload(file)).status, 201);
  const path = file.url.slice(publicUrl.length);
  await api.manage('DELETE', path);
  await receiveFile(api, file.key, 'again');
  await sweepFiles(api.context);
  t.match(await row(file), { removedAt: String }, 'the grant can still be used');
  api.advance(HOUR + 1);
  await sweepFiles(api.context);
  t.same([await isThere(file), await row(file)], [false, undefined]);
});

t.test('finds unused files by indexes, with any number of files', async (t) => {
  const { db } = await begin(t);
  const now = '2026-01-01T00:00:00.000Z';
  for (const [query, index] of [
    [unclaimedFiles(db, now, 10), /files_unclaimed/],
    [removedFiles(db, now, 10), /files_removed/],
    [unsettledFiles(db, { reserved: now, ended: now }, 10), /files_unsettled/],
  ] as const) {
    const plan = (await planOf(db, query)).join('\n');
    t.match(plan, index);
    t.notMatch(plan, /TEMP B-TREE/);
  }
});

t.test('searches a text full of partial addresses quickly', async (t) => {
  const { api } = await begin(t);
  const queries: string[] = [];
  const db = api.context.db.withPlugin({
    transformQuery: ({ node }) => {
      queries.push(node.kind);
      return node;
    },
    transformResult: async ({ result }) => result,
  });
  const text =
    '/storage/a/public/x--fid--'.repeat(40_000) + '/storage/a/public/'.repeat(40_000) + 'y'.repeat(100_000);
  await claimFilesIn(db, { workspaceId, text, now: 'x' });
  t.same(queries, [], 'no address is found');
});
