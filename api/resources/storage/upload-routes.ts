/**
 * The upload target for files on disk. With S3 as the store this route does not exist.
 *
 * Callers: anybody with a grant, which the form contains.
 */
import { once } from 'node:events';
import { finished } from 'node:stream';
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { badRequest, forbidden, tooManyRequests } from '#api/errors.ts';
import { countedAddress } from '#api/http/client-address.ts';
import { binary } from '#api/http/media.ts';
import { findFile, recordSize, refuseFull } from '#api/storage/files.ts';
import { grantedBy } from '#api/storage/upload-grant.ts';
import { PRIVATE_BYTES_MAX } from './grants.ts';
import { withStorageErrors } from './storage-errors.ts';

/** Maximum number of concurrent uploads, and of those from one address. Each has its file in memory. */
const UPLOADS_MAX = 16;
const UPLOADS_OF_ONE_MAX = UPLOADS_MAX / 2;
const RETRY_SECONDS = 5;
/** Maximum size of boundaries, part headers and fields around the file. */
const FORM_BYTES_MAX = 65_536;
const limits = { fields: 20, fieldSize: 8_192, files: 1, parts: 21, headerPairs: 20 } as const;

/** SDKs look for this word of S3. */
const TOO_LARGE = 'EntityTooLarge: The file is larger than the grant allows';

const Form = Type.Object(
  { file: binary },
  { description: 'The granted form fields as they came, then the file as the last part.' },
);

export const uploadRoutes: Routes = async (app, { context }) => {
  const { clock, config, db, signer, storage } = context;
  if (config.storage.kind !== 'disk') return;
  /** The address of each upload that has begun. */
  const uploads: string[] = [];

  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));

  app.post(
    '/api/v1/client/:workspaceId/storage/upload',
    {
      schema: {
        summary: 'Upload a file with the fields that were granted',
        response: { 201: Type.Object({ data: Type.String() }) },
      },
      config: { reads: { 'multipart/form-data': Form } },
      bodyLimit: PRIVATE_BYTES_MAX + FORM_BYTES_MAX,
      async onRequest(request, reply) {
        const address = countedAddress(request, config.trustedProxies);
        const own = uploads.filter((one) => one === address).length;
        if (uploads.length >= UPLOADS_MAX || own >= UPLOADS_OF_ONE_MAX) throw tooManyRequests(RETRY_SECONDS);
        uploads.push(address);
        finished(reply.raw, () => void uploads.splice(uploads.indexOf(address), 1));
      },
      errorHandler(error) {
        throw 'code' in error && error.code === 'FST_ERR_CTP_BODY_TOO_LARGE' ? badRequest(TOO_LARGE) : error;
      },
    },
    async (request, reply) => {
      const { fields, file } = await readForm(contentTypeOf(request.raw.rawHeaders), request.body);
      const object = grantedBy(fields, clock(), signer);
      if (object === null) throw forbidden('Send every granted field, unchanged and within two minutes');
      if (file.length > object.bytesMax) throw badRequest(TOO_LARGE);
      const row = await findFile(db, object.key);
      if (row === null || row.size !== null) throw withdrawn();
      await refuseFull(context, row.workspaceId, file.length);
      await withStorageErrors(storage.put(object, file));
      if (!(await recordSize(db, object.key, file.length))) throw withdrawn();
      return reply.code(201).send({ data: 'File stored successfully' });
    },
  );
};

function withdrawn() {
  return forbidden(
    'The grant was used before, or its file was deleted, or what it belongs to. Ask for a new grant',
  );
}

/** @throws ApiError bad_request */
async function readForm(contentType: string, body: unknown) {
  const fields = new Map<string, string>();
  const chunks: Buffer[] = [];
  let hasFile = false;
  const { Busboy } = await import('@fastify/busboy');
  try {
    const parser = new Busboy({ headers: { 'content-type': contentType }, limits });
    parser.on('field', (name, value) => fields.set(name, value));
    parser.on('file', (_name, stream) => {
      hasFile = true;
      // Its errors are errors of the parser too.
      stream.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', () => undefined);
    });
    parser.end(body);
    await once(parser, 'finish');
  } catch {
    throw badRequest(
      'The body must be a whole multipart/form-data with every granted field, and the file last',
    );
  }
  if (!hasFile) throw badRequest('The form has no file');
  return { fields, file: Buffer.concat(chunks) };
}

/**
 * Reads the content type from the raw headers. Our hooks remove it before a body is parsed, because every other body is
 * JSON.
 */
function contentTypeOf(rawHeaders: readonly string[]): string {
  const at = rawHeaders.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === 'content-type');
  return at === -1 ? '' : (rawHeaders[at + 1] ?? '');
}
