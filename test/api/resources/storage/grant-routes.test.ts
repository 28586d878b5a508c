/** Grants: who gets one, the messages of refusals, and the content. */
import t, { type Test } from 'tap';
import { addSurvey, apiKey, publicUrl, startApi, workspaceId } from '#test/support/api-app.ts';

const MEBIBYTE = 1_048_576;
const upload = (overrides: Record<string, unknown> = {}) => ({
  id: 'q1',
  type: 'fileUpload',
  headline: { default: 'Your file?' },
  allowMultipleFiles: false,
  ...overrides,
});

async function withSurvey(t: Test, question: Record<string, unknown> = {}) {
  const api = await startApi(t);
  const survey = await addSurvey(api, { questions: [upload(question)] });
  return { api, surveyId: String(survey.id) };
}

/** A disk grant is signed for this limit. */
function bytesMaxOf(fields: Record<string, string>): number {
  return JSON.parse(Buffer.from(fields.Policy ?? '', 'base64').toString()).bytesMax;
}

const client = `/api/v1/client/${workspaceId}/storage`;
const management = '/api/v1/management/storage';

for (const version of ['v1', 'v2']) {
  t.test(`200: the ${version} client API grants a private file for a question`, async (t) => {
    const { api, surveyId } = await withSurvey(t);
    const reply = await api.client('POST', `/api/${version}/client/${workspaceId}/storage`, {
      fileName: 'My photo.final.PNG',
      fileType: 'image/png; charset=x',
      surveyId,
      elementId: 'q1',
    });
    t.equal(reply.status, 200, reply.text);
    const { data } = reply.json;
    t.strictSame(Object.keys(data).sort(), ['fileUrl', 'presignedFields', 'signedUrl', 'updatedFileName']);
    t.match(data.updatedFileName, /^My photo\.final--fid--[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f-]{18,}\.PNG$/);
    const place = `${publicUrl}/storage/${workspaceId}/private/surveys/${surveyId}/elements/q1/`;
    t.equal(data.fileUrl, place + encodeURIComponent(data.updatedFileName));
    t.equal(data.signedUrl, `${publicUrl}/api/v1/client/${workspaceId}/storage/upload`);
    t.equal(data.presignedFields['Content-Type'], 'image/png');
    t.equal(data.presignedFields.success_action_status, '201');
    t.match(
      data.presignedFields.key,
      new RegExp(`^${workspaceId}/private/surveys/${surveyId}/elements/q1/My photo`),
    );
    t.equal(bytesMaxOf(data.presignedFields), 10 * MEBIBYTE);
    t.equal(reply.headers['access-control-allow-origin'], '*');
    t.notOk('signingData' in data, 'old clients would choose another way of upload');
  });
}

t.test('200: an old client names no element, and its file lies directly in the workspace', async (t) => {
  const { api, surveyId } = await withSurvey(t);
  const reply = await api.client('POST', client, {
    fileName: 'a.pdf',
    fileType: 'application/pdf',
    surveyId,
  });
  t.equal(reply.status, 200, reply.text);
  t.match(
    reply.json.data.fileUrl,
    new RegExp(`^${publicUrl}/storage/${workspaceId}/private/a--fid--[0-9a-f-]+\\.pdf$`),
  );
});

t.test('200: the management API grants a public file of 5 MiB, by either name of the scope', async (t) => {
  const api = await startApi(t);
  await api.addWorkspace('ws2');
  const key = await api.addKey({ ws2: 'write' });
  for (const scope of [{ workspaceId: 'ws2' }, { environmentId: 'ws2' }]) {
    const body = { ...scope, fileName: 'logo.webp', fileType: 'image/webp' };
    const reply = await api.client('POST', management, body, { 'x-api-key': key });
    t.equal(reply.status, 200, reply.text);
    t.match(reply.json.data.fileUrl, new RegExp(`^${publicUrl}/storage/ws2/public/logo--fid--`));
    t.equal(bytesMaxOf(reply.json.data.presignedFields), 5 * MEBIBYTE);
  }
});

t.test('200: a long name for a question with the longest id, which an answer keeps', async (t) => {
  const elementId = 'q'.repeat(255);
  const { api, surveyId } = await withSurvey(t, { id: elementId });
  const body = { fileName: `${'😀'.repeat(300)}.docx`, surveyId, elementId };
  const fileType = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document';
  const granted = await api.client('POST', client, { ...body, fileType });
  t.equal(granted.status, 200, granted.text);
  const data = { [elementId]: [granted.json.data.fileUrl] };
  const responses = `/api/v1/client/${workspaceId}/responses`;
  t.equal((await api.client('POST', responses, { surveyId, finished: true, data })).status, 200);
  const { claimedAt } = await api.context.db.selectFrom('files').selectAll().executeTakeFirstOrThrow();
  t.ok(claimedAt, 'the file is not deleted after a day');
});

t.test('200: a question can lower the limit of 10 MiB', async (t) => {
  const { api, surveyId } = await withSurvey(t, { maxSizeInMB: 2 });
  const body = { fileName: 'a.pdf', fileType: 'application/pdf', surveyId, elementId: 'q1' };
  const { data } = (await api.client('POST', client, body)).json;
  t.equal(bytesMaxOf(data.presignedFields), 2 * MEBIBYTE);
});

t.test('records a grant before it returns it', async (t) => {
  const { api, surveyId } = await withSurvey(t);
  const { data } = (
    await api.client('POST', client, {
      fileName: 'a.pdf',
      fileType: 'application/pdf',
      surveyId,
      elementId: 'q1',
    })
  ).json;
  const row = await api.context.db.selectFrom('files').selectAll().executeTakeFirstOrThrow();
  t.match(row, {
    key: data.presignedFields.key,
    workspaceId,
    access: 'private',
    surveyId,
    responseId: null,
    size: null,
  });
});

interface Case {
  readonly title: string;
  /** Fields of the body that are not those of a good request; undefined leaves one out. */
  readonly body: Readonly<Record<string, unknown>>;
  /** 400 unless given. */
  readonly status?: number;
  /** That fields are missing or malformed, unless given. */
  readonly message?: string;
  readonly details?: Record<string, unknown>;
  readonly question?: Record<string, unknown>;
}

const FIELDS = 'Fields are missing or incorrectly formatted';
const ofClient: readonly Case[] = [
  {
    title: 'an empty body',
    body: { fileName: undefined, fileType: undefined, surveyId: undefined },
    details: { fileName: 'Required', fileType: 'Required', surveyId: 'Required' },
  },
  { title: 'blank values', body: { fileName: ' ' }, details: { fileName: 'Required' } },
  { title: 'no survey', body: { surveyId: undefined }, details: { surveyId: 'Required' } },
  { title: 'a malformed id', body: { surveyId: 'NOT AN ID' }, details: { surveyId: 'Invalid cuid2' } },
  {
    title: 'no extension',
    body: { fileName: 'readme', fileType: 'text/plain' },
    details: { fileName: 'File name must have an extension' },
  },
  ...['page.html', 'drawing.svg', 'run.js', 'setup.exe', 'x.png.php', 'a.xhtml'].map(
    (fileName): Case => ({
      title: fileName,
      body: { fileName },
      details: { fileName: 'File extension is not allowed for security reasons' },
    }),
  ),
  {
    title: 'a type that does not fit the extension',
    body: { fileType: 'text/html' },
    details: { fileType: "File type doesn't match the file extension" },
  },
  {
    title: 'an extension that the request excludes',
    body: { allowedFileExtensions: ['pdf', 'jpg'] },
    details: { fileName: 'File extension is not allowed, allowed extensions are: pdf, jpg' },
  },
  {
    title: 'an unknown survey',
    body: { surveyId: 'nosuch' },
    status: 404,
    message: 'Survey not found',
    details: { resource_id: 'nosuch', resource_type: 'Survey' },
  },
  {
    title: 'a survey without file questions',
    question: { type: 'openText' },
    body: {},
    message: 'Survey does not allow file uploads',
  },
  { title: 'another question', body: { elementId: 'q2' }, message: 'Element does not allow file uploads' },
  {
    title: 'an extension that the question excludes',
    question: { allowedFileExtensions: ['pdf'] },
    body: { elementId: 'q1' },
    message: 'File extension is not allowed for this element',
  },
  {
    title: 'a name without allowed characters',
    body: { fileName: '???.png' },
    message: 'Invalid input',
    details: { fileName: '???.png' },
  },
];

for (const { title, body, status = 400, message = FIELDS, details = {}, question } of ofClient) {
  t.test(`${status}: ${title}`, async (t) => {
    const { api, surveyId } = await withSurvey(t, question);
    const reply = await api.client('POST', client, {
      ...{ fileName: 'a.png', fileType: 'image/png', surveyId },
      ...body,
    });
    t.equal(reply.status, status, reply.text);
    t.strictSame(reply.json, { code: status === 404 ? 'not_found' : 'bad_request', message, details });
    t.equal(reply.headers['access-control-allow-origin'], '*');
    t.strictSame(await api.context.db.selectFrom('files').select('key').execute(), [], 'nothing is recorded');
  });
}

t.test('400: an entry of allowedFileExtensions that is never allowed', async (t) => {
  const { api, surveyId } = await withSurvey(t);
  const body = { fileName: 'a.png', fileType: 'image/png', surveyId, allowedFileExtensions: ['png', 'svg'] };
  const reply = await api.client('POST', client, body);
  t.equal(reply.status, 400);
  t.match(Object.keys(reply.json.details)[0], /^allowedFileExtensions\.1/);
});

t.test('400: a survey of another workspace', async (t) => {
  const { api, surveyId } = await withSurvey(t);
  await api.addWorkspace('ws2');
  const body = { fileName: 'a.png', fileType: 'image/png', surveyId };
  const reply = await api.client('POST', '/api/v1/client/ws2/storage', body);
  t.strictSame(reply.json, {
    code: 'bad_request',
    message: 'Survey does not belong to the workspace',
    details: { surveyId, workspaceId: 'ws2' },
  });
});

t.test('checks the workspace before the body, and the body before its fields', async (t) => {
  const { api } = await withSurvey(t);
  const unknown = await api.client('POST', '/api/v1/client/nosuch/storage', '{');
  t.match([unknown.status, unknown.json.message], [404, 'Workspace not found']);
  const malformed = await api.client('POST', client, '{');
  t.match(
    [malformed.status, malformed.json.message],
    [400, 'Malformed JSON input, please check your request body'],
  );
  t.type(malformed.json.details.error, 'string');
});

t.test('management: checks 401 first, then the scope, then the fields', async (t) => {
  const api = await startApi(t);
  await api.addWorkspace('ws2');
  const file = { fileName: 'a.png', fileType: 'image/png' };
  t.equal((await api.client('POST', management, file)).status, 401);
  t.match((await api.manage('POST', management, file)).json, {
    message: 'workspaceId must be provided',
    details: {},
  });
  t.equal((await api.manage('POST', management, { ...file, environmentId: 'nosuch' })).status, 404);
  t.match((await api.manage('POST', management, { ...file, environmentId: 'ws2' })).json, {
    code: 'unauthorized',
  });
  const reader = await api.addKey({ [workspaceId]: 'read' });
  const read = await api.client('POST', management, { ...file, workspaceId }, { 'x-api-key': reader });
  t.match([read.status, read.json.code], [401, 'unauthorized'], 'access to read is not enough');
  const malformed = await api.client('POST', management, '{', { 'x-api-key': apiKey });
  t.match([malformed.status, malformed.json.details], [400, {}]);
});
