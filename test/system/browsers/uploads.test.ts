/** Uploads through the gateway's process to each store: with curl, a form in a browser, and the npm client. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { FormbricksAPI } from '@formbricks/api';
import t, { type Test } from 'tap';
import { isRecord } from '#api/values/schemas.ts';
import { surveyBody } from '#test/support/api-app.ts';
import { startBrowser, startSite } from '#test/support/browser.ts';
import { startS3 } from '#test/support/s3.ts';
import { type Stack, startStack } from '#test/support/stack.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);
/** One red pixel. */
const pixel = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC',
  'base64',
);

interface Granted {
  readonly signedUrl: string;
  readonly fileUrl: string;
  readonly presignedFields: Readonly<Record<string, string>>;
}

async function curl(...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)('curl', ['--silent', '--show-error', ...args]);
  return stdout;
}

function granted(reply: string): Granted {
  const { data } = JSON.parse(reply);
  if (!isRecord(data)) throw new Error(`No grant: ${reply}`);
  return JSON.parse(JSON.stringify(data));
}

async function publicGrant(stack: Stack, fileName: string, fileType: string): Promise<Granted> {
  return granted(
    await curl(
      ...['-X', 'POST', `${stack.origin}/api/v1/management/storage`, '-H', `x-api-key: ${stack.apiKey}`],
      ...['-d', JSON.stringify({ workspaceId: stack.workspaceId, fileName, fileType })],
    ),
  );
}

async function fileSurvey(stack: Stack): Promise<string> {
  const question = { id: 'q1', type: 'fileUpload', headline: { default: 'x' }, allowMultipleFiles: true };
  const body = surveyBody({ workspaceId: stack.workspaceId, questions: [question] });
  const made = await stack.manage('POST', '/api/v1/management/surveys', body);
  if (!isRecord(made)) throw new Error('No survey');
  return String(made.id);
}

function uploads(t: Test, stack: Stack): void {
  const { origin, apiKey, workspaceId } = stack;

  t.test('curl: grant, upload, read, read a range, delete', async (t) => {
    const path = join(folder, 'photo.png');
    writeFileSync(path, pixel);
    const grant = await publicGrant(stack, 'My photo.png', 'image/png');
    const fields = Object.entries(grant.presignedFields).flatMap(([name, value]) => [
      '--form-string',
      `${name}=${value}`,
    ]);
    const status = await curl(
      '-o',
      join(folder, 'reply.xml'),
      '-w',
      '%{http_code}',
      ...fields,
      '-F',
      `file=@${path}`,
      grant.signedUrl,
    );
    t.equal(status, '201');
    t.ok(grant.fileUrl.startsWith(`${origin}/storage/${workspaceId}/public/My%20photo--fid--`));
    const copy = join(folder, 'copy.png');
    t.match(await curl('-D', '-', '-o', copy, grant.fileUrl), /content-type: image\/png/i);
    t.equal(await curl('-r', '1-3', grant.fileUrl), 'PNG');
    t.match(await curl('-I', grant.fileUrl), new RegExp(`content-length: ${pixel.length}`, 'i'));
    t.match(await curl('-X', 'DELETE', grant.fileUrl), /not_authenticated/);
    t.equal(
      await curl('-X', 'DELETE', '-H', `x-api-key: ${apiKey}`, grant.fileUrl),
      '{"data":"File deleted successfully"}',
    );
    t.match(await curl(grant.fileUrl), /"resource_type":"file"/);
  });

  t.test(
    'the published npm client: a private file in an answer, read with a key, deleted with its response',
    async (t) => {
      const surveyId = await fileSurvey(stack);
      const { client } = new FormbricksAPI({ apiHost: origin, environmentId: workspaceId });
      const file = {
        name: 'Ünterlage 1.png',
        type: 'image/png',
        base64: `data:image/png;base64,${pixel.toString('base64')}`,
      };
      const url = await client.storage.uploadFile(file, { surveyId });
      t.match(url, new RegExp(`^${origin}/storage/${workspaceId}/private/`));
      t.equal((await fetch(url)).status, 401, 'others cannot read the file');
      const read = async (): Promise<Response> => fetch(url, { headers: { 'x-api-key': apiKey } });
      t.ok(Buffer.from(await (await read()).arrayBuffer()).equals(pixel));

      const response = await client.response.create({ surveyId, finished: true, data: { q1: [url] } });
      if (!response.ok) throw new Error(JSON.stringify(response.error));
      await stack.manage('DELETE', `/api/v1/management/responses/${response.data.id}`);
      t.equal((await read()).status, 404);
    },
  );

  t.test('a form in a browser, from a page of another origin', async (t) => {
    const grant = await publicGrant(stack, 'form.png', 'image/png');
    const hidden = Object.entries(grant.presignedFields)
      .map(([name, value]) => `<input type="hidden" name="${name}" value="${value}">`)
      .join('');
    const site = await startSite(
      t,
      `<form method="post" enctype="multipart/form-data" action="${grant.signedUrl}">${hidden}
       <input type="file" name="file"><button>Send</button></form>`,
    );
    const page = await (await startBrowser(t)).newPage();
    await page.goto(site);
    await page.setInputFiles('input[type=file]', { name: 'form.png', mimeType: 'image/png', buffer: pixel });
    const answered = page.waitForResponse((response) => response.request().method() === 'POST');
    await page.click('button');
    t.equal((await answered).status(), 201);
    await page.goto(site);
    const width = await page.evaluate(
      `(async () => {
        const image = new Image();
        image.src = ${JSON.stringify(grant.fileUrl)};
        await image.decode();
        return image.naturalWidth;
      })()`,
    );
    t.equal(width, 1, 'pages show the file as a picture');
  });
}

t.test('the program of the page uploads to disk', async (t) => {
  const stack = await startStack(t);
  uploads(t, stack);

  t.test('a browser with fetch; an uploaded script does not run on our origin', async (t) => {
    const site = await startSite(t, '<title>honest</title>');
    const page = await (await startBrowser(t)).newPage();
    await page.goto(site);
    const evil = `<html><title>owned</title><script>document.title = 'owned'; fetch('/owned')</script></html>`;
    for (const [name, type] of [
      ['evil.png', 'image/png'],
      ['evil.txt', 'text/plain'],
    ] as const) {
      const grant = await publicGrant(stack, name, type);
      const status = await page.evaluate(
        async ({ signedUrl, presignedFields, content }) => {
          const form = new FormData();
          for (const [field, value] of Object.entries(presignedFields)) form.append(field, value);
          form.append('file', new Blob([content], { type: 'text/html' }), 'evil.html');
          return (await fetch(signedUrl, { method: 'POST', body: form })).status;
        },
        { ...grant, content: evil },
      );
      t.equal(status, 201, 'other origins can read the reply');
      const asked: string[] = [];
      const visitor = await page.context().newPage();
      visitor.on('request', (request) => asked.push(request.url()));
      // Navigation reports a download as an error.
      await visitor
        .goto(grant.fileUrl)
        .catch((error: Error) => t.match(error.message, /Download is starting/));
      await visitor.waitForLoadState();
      t.not(await visitor.title(), 'owned', name);
      t.notMatch(asked, [/\/owned$/]);
      await visitor.close();
    }
  });
});

t.test('the program of the page uploads to S3', async (t) => {
  const s3 = await startS3(t);
  const stack = await startStack(t, {
    apiEnv: {
      S3_BUCKET_NAME: s3.location.bucket,
      S3_ENDPOINT_URL: s3.endpoint,
      S3_ACCESS_KEY: s3.credentials.accessKey,
      S3_SECRET_KEY: s3.credentials.secretKey,
      S3_FORCE_PATH_STYLE: '1',
    },
  });
  uploads(t, stack);
});
