/** Files are deleted with their response, their survey and their workspace, and with nothing else. */
import { pino } from 'pino';
import t, { type Test } from 'tap';
import { startScheduledJobs } from '#api/jobs/scheduled-jobs.ts';
import { removeFilesOf, settleUploads, sweepAllFiles, sweepFiles } from '#api/storage/removal.ts';
import { type Storage, StorageUnavailable } from '#api/storage/storage.ts';
import { addSurvey, publicUrl, startApi, type TestApi, workspaceId } from '#test/support/api-app.ts';
import { addFileRow, receiveFile } from '#test/support/files.ts';

const HOUR = 3_600_000;

interface Uploader {
  readonly api: TestApi;
  readonly surveyId: string;
  /** Gets a grant, and stores the file unless told otherwise. @returns the address and the key */
  upload(options?: { isStored?: boolean; elementId?: string | null }): Promise<{ url: string; key: string }>;
  /** Creates a response that names these files. @returns its id */
  respond(files: readonly string[]): Promise<string>;
  isThere(key: string): Promise<boolean>;
  rows(): Promise<number>;
}

async function uploader(t: Test, wrap?: (storage: Storage) => Partial<Storage>): Promise<Uploader> {
  const api = await startApi(
    t,
    wrap === undefined ? {} : { parts: ({ storage }) => ({ storage: { ...storage, ...wrap(storage) } }) },
  );
  const { db, storage } = api.context;
  const survey = await addSurvey(api, {
    questions: [{ id: 'q1', type: 'fileUpload', headline: { default: 'x' }, allowMultipleFiles: true }],
  });
  const surveyId = String(survey.id);
  return {
    api,
    surveyId,
    async upload({ isStored = true, elementId = 'q1' } = {}) {
      const body = { fileName: 'a.png', fileType: 'image/png', surveyId, elementId };
      const { data } = (await api.client('POST', `/api/v1/client/${workspaceId}/storage`, body)).json;
      const key: string = data.presignedFields.key;
      if (isStored) {
        await receiveFile(api, key, 'x');
        await db
          .updateTable('files')
          .set({ size: 1, storedAt: data.createdAt ?? 'now' })
          .where('key', '=', key)
          .execute();
      }
      return { url: data.fileUrl, key };
    },
    async respond(files) {
      const body = { surveyId, finished: true, data: { q1: files } };
      const reply = await api.client('POST', `/api/v1/client/${workspaceId}/responses`, body);
      if (reply.status !== 200) throw new Error(reply.text);
      return reply.json.data.id;
    },
    async isThere(key) {
      const object = await storage.open(key);
      await object?.close();
      return object !== null;
    },
    rows: async () =>
      (await db.selectFrom('files').select('key').where('removedAt', 'is', null).execute()).length,
  };
}

t.test('deleting a response deletes its files, by address and by path, and no others', async (t) => {
  const { api, upload, respond, isThere } = await uploader(t);
  const [mine, old, theirs, unsent] = [
    await upload(),
    await upload({ elementId: null }),
    await upload(),
    await upload(),
  ];
  const response = await respond([mine.url, old.url.slice(publicUrl.length)]);
  await respond([theirs.url]);
  t.equal((await api.manage('DELETE', `/api/v1/management/responses/${response}`)).status, 200);
  t.equal(await isThere(mine.key), false);
  t.equal(await isThere(old.key), false);
  t.equal(await isThere(theirs.key), true);
  t.equal(await isThere(unsent.key), true, 'a file whose response was never sent is kept');
});

t.test('deleting a response also deletes a file that an update named', async (t) => {
  const { api, upload, isThere, surveyId } = await uploader(t);
  const start = { surveyId, finished: false, data: {} };
  const { id } = (await api.client('POST', `/api/v1/client/${workspaceId}/responses`, start)).json.data;
  const { url, key } = await upload();
  const update = { finished: true, data: { q1: [url] } };
  t.equal((await api.client('PUT', `/api/v1/client/${workspaceId}/responses/${id}`, update)).status, 200);
  await api.manage('DELETE', `/api/v1/management/responses/${id}`);
  t.equal(await isThere(key), false);
});

t.test('naming a file of others in a response does not delete it', async (t) => {
  const { api, upload, respond, isThere } = await uploader(t);
  const { url, key } = await upload();
  await respond([url]);
  const logo = `${workspaceId}/public/logo.png`;
  await receiveFile(api, logo, 'logo');
  const copy = await respond([url, `/storage/${workspaceId}/public/logo.png`]);
  await api.manage('DELETE', `/api/v1/management/responses/${copy}`);
  t.equal(await isThere(key), true, 'the file belongs to the response that named it first');
  t.equal(await isThere(logo), true, 'a public file belongs to no response');
});

t.test('deleting a survey deletes all its files, including unsent ones', async (t) => {
  const { api, upload, respond, isThere, surveyId, rows } = await uploader(t);
  const [sent, unsent] = [await upload(), await upload()];
  await respond([sent.url]);
  t.equal((await api.manage('DELETE', `/api/v1/management/surveys/${surveyId}`)).status, 200);
  t.equal(await isThere(sent.key), false);
  t.equal(await isThere(unsent.key), false);
  t.equal(await rows(), 0);
});

t.test('the sweep deletes files of a deleted workspace, and those that a request could not', async (t) => {
  const { api, upload, isThere, rows } = await uploader(t);
  const files = [];
  for (let i = 0; i < 30; i += 1) files.push(await upload());
  t.equal(await sweepFiles(api.context), 0, 'nothing is deleted while the owners exist');
  await api.context.db.deleteFrom('workspaces').where('id', '=', workspaceId).execute();
  t.equal(await sweepFiles(api.context, 20), 20);
  t.equal(await sweepFiles(api.context, 20), 10);
  for (const { key } of files) t.equal(await isThere(key), false);
  t.equal(await rows(), 0);
});

t.test('deletes unused grants after an hour, and records uploads that nobody reported', async (t) => {
  const { api, upload, rows } = await uploader(t);
  await upload({ isStored: false });
  const arrived = await upload();
  await api.context.db.updateTable('files').set({ size: null, storedAt: null }).execute();
  await settleUploads(api.context);
  t.equal(await rows(), 2, 'an upload may still be in progress');
  api.advance(HOUR + 1);
  await settleUploads(api.context);
  const row = await api.context.db.selectFrom('files').selectAll().executeTakeFirstOrThrow();
  t.match(row, { key: arrived.key, size: 1, storedAt: String });
  t.equal(await rows(), 1);
});

t.test('an unavailable store delays no caller: it is logged, and the next sweep deletes', async (t) => {
  let isAway = true;
  const { api, upload, respond, isThere, rows } = await uploader(t, (storage) => ({
    async delete(key) {
      if (isAway) throw new StorageUnavailable('s3_client_error', 'S3 is away');
      await storage.delete(key);
    },
  }));
  const files = [await upload(), await upload()];
  const response = await respond(files.map(({ url }) => url));
  const reply = await api.manage('DELETE', `/api/v1/management/responses/${response}`);
  t.equal(reply.status, 200);
  const known = () => api.context.db.selectFrom('files').select('key').execute();
  t.equal((await known()).length, 2, 'both files are still listed for deletion');
  const lines: string[] = [];
  const log = { error: (_: object, message: string) => void lines.push(message) };
  await removeFilesOf(api.context, { responseId: response }, log);
  t.match(lines, [/next sweep/]);
  await t.rejects(sweepFiles(api.context), StorageUnavailable);
  isAway = false;
  await sweepFiles(api.context);
  for (const { key } of files) t.equal(await isThere(key), false);
  t.equal(await rows(), 0);
  api.advance(HOUR + 1);
  await sweepFiles(api.context);
  t.same(await known(), [], 'the rows are deleted when no upload can be in progress');
});

t.test('the sweep goes on until nothing is left, and deletes partial uploads', async (t) => {
  let sweeps = 0;
  const { api, upload, rows } = await uploader(t, () => ({
    async sweep() {
      sweeps += 1;
    },
  }));
  for (let i = 0; i < 7; i += 1) await upload();
  await api.context.db.deleteFrom('workspaces').where('id', '=', workspaceId).execute();
  await sweepAllFiles(api.context, () => false, 2);
  t.equal(await rows(), 0);
  t.equal(sweeps, 1, 'one sweep deletes everything');
});

t.test('the scheduled sweep begins at once, and its error tells the operator what to do', async (t) => {
  const { api } = await uploader(t, () => ({
    async delete() {
      throw new StorageUnavailable('s3_client_error', 'S3 is away, do this');
    },
  }));
  await addFileRow(api, 'gone/public/a.png', { storedAt: 'x' });
  const lines: string[] = [];
  const log = pino({ level: 'error' }, { write: (line: string) => void lines.push(JSON.parse(line).msg) });
  await startScheduledJobs(api.context, log).stop();
  t.strictSame(lines, ['S3 is away, do this']);
});
