/**
 * The upload target for files on disk, with the fields, statuses and texts of S3. With S3 as the store this route
 * does not exist.
 *
 * Callers: anybody with a grant, which the form contains.
 */
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { binary, media } from '#api/http/media.ts';
import { findGrant, markStored } from '#api/storage/files.ts';
import { removeFile } from '#api/storage/removal.ts';
import { StorageUnavailable, UploadAborted } from '#api/storage/storage.ts';
import { admit } from '#api/storage/upload-policy.ts';
import { newUuid } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Millis } from '#shared/clock.ts';
import { PRIVATE_BYTES_MAX, quotaTexts } from './grant.ts';
import { createUploadLimits, type UploadSlot } from './upload-concurrency.ts';
import { BadForm, readUpload } from './upload-form.ts';

/** Maximum number of concurrent uploads. Each holds a file open, and a piece of it in memory. */
const UPLOADS_MAX = { all: 64, perKey: 2 } as const;
/** A sender that is silent for this time has left, or only wants to hold a slot. */
const SILENCE_MS: Millis = 15_000;
/** Maximum size of boundaries, part headers and fields around the file. */
const FORM_BYTES_MAX = 65_536;
const RETRY_SECONDS = 5;

type UploadError = readonly [status: number, code: string, message: string];

const tooLarge: UploadError = [
  400,
  'EntityTooLarge',
  'Your proposed upload exceeds the maximum allowed size',
];
const withdrawn: UploadError = [
  403,
  'AccessDenied',
  'This grant was used before, or its file was deleted, or what it belongs to. Ask for a new grant',
];
const full: UploadError = [413, 'QuotaExceeded', quotaTexts.workspace];
const busy: UploadError = [503, 'SlowDown', 'Too many uploads at the same time; try again in a few seconds'];
const broken: UploadError = [
  503,
  'ServiceUnavailable',
  'The file could not be stored; try again later, or tell the operator of this service, whose log says what is wrong',
];

const Form = Type.Object(
  { file: binary },
  { description: 'The granted form fields as they came, then the file as the last part.' },
);
const xmlReply = (description: string) => media('application/xml', Type.String(), description);
const schema = {
  summary: 'Upload a file with the fields that were granted',
  response: {
    201: xmlReply('Stored.'),
    400: xmlReply('The file is too large, or the form is not a complete one.'),
    403: xmlReply('The fields were not granted by us, were changed, or are too old.'),
    412: xmlReply('The body is not a form of parts.'),
    413: xmlReply('There is no room for files of this size; see the text.'),
    503: xmlReply('Too busy, or the disk refuses; Retry-After may say for how long.'),
  },
};
const config = { reads: { 'multipart/form-data': Form } };

type UploadResult =
  | { readonly key: string; readonly size: number; readonly etag: string }
  | { readonly error: UploadError };

export const uploadRoutes: Routes = async (app, { context }) => {
  const store = context.storage.receive;
  if (store === null) return;
  const limits = createUploadLimits(UPLOADS_MAX, context.clock);

  const receive = async (
    fields: ReadonlyMap<string, string>,
    file: Readable,
    announcedBytes: number,
  ): Promise<UploadResult> => {
    const admission = admit(fields, context.clock(), context.signer);
    if (admission.kind === 'refused') return { error: [403, 'AccessDenied', admission.reason] };
    const { object } = admission;
    if (announcedBytes > object.bytesMax + FORM_BYTES_MAX) return { error: tooLarge };
    if ((await findGrant(context.db, object.key))?.storedAt !== null) return { error: withdrawn };
    const slot = limits.acquire(object.key, () => file.destroy(new TooSlow()));
    if (slot === null) return { error: busy };
    try {
      const received = await store(object, counted(file, slot));
      if (received.kind === 'tooLarge') return { error: tooLarge };
      if (received.kind === 'exists') return { error: withdrawn };
      return { key: object.key, size: received.size, etag: received.etag };
    } finally {
      slot.release();
    }
  };

  // The handler reads the body piece by piece.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));

  app.post('/api/v1/client/:workspaceId/storage/upload', { schema, config }, async (request, reply) => {
    const { raw } = request;
    const announcedBytes = Number(request.headers['content-length'] ?? 0);
    if (announcedBytes > PRIVATE_BYTES_MAX + FORM_BYTES_MAX) return refuse(request, reply, tooLarge);
    raw.setTimeout(SILENCE_MS, () => raw.destroy());
    try {
      const result = await readUpload(raw, contentTypeOf(raw), (fields, file) =>
        receive(fields, file, announcedBytes),
      );
      if ('error' in result) return refuse(request, reply, result.error);
      const { key, size, etag } = result;
      raw.resume();
      const now = toTimestamp(context.clock());
      const outcome = await markStored(context.db, context.config.storageQuota, key, size, now);
      if (outcome !== 'stored') {
        await removeFile(context, key);
        return refuse(request, reply, outcome === 'gone' ? withdrawn : full);
      }
      return reply
        .code(201)
        .header('content-type', 'application/xml')
        .header('etag', etag)
        .send(xml('PostResponse', { Key: key, ETag: etag }));
    } catch (error) {
      return refuse(request, reply, errorOf(error, request));
    } finally {
      raw.setTimeout(0);
    }
  });

  async function refuse(
    request: FastifyRequest,
    reply: FastifyReply,
    [status, code, message]: UploadError,
  ): Promise<FastifyReply> {
    request.raw.resume();
    if (code === busy[1]) reply.header('retry-after', RETRY_SECONDS);
    return reply
      .code(status)
      .header('content-type', 'application/xml')
      .send(xml('Error', { Code: code, Message: message, RequestId: newUuid(context.random) }));
  }
};

/** Thrown if another upload got the slot of this one. */
class TooSlow extends Error {}

async function* counted(file: AsyncIterable<Buffer>, slot: UploadSlot): AsyncGenerator<Buffer> {
  for await (const chunk of file) {
    slot.count(chunk.length);
    yield chunk;
  }
}

function errorOf(error: unknown, request: FastifyRequest): UploadError {
  if (error instanceof BadForm) {
    return [error.code === 'PreconditionFailed' ? 412 : 400, error.code, error.message];
  }
  if (error instanceof UploadAborted && error.cause instanceof TooSlow) return busy;
  // The sender has left, or the form broke off inside the file.
  if (error instanceof UploadAborted) return [400, 'IncompleteBody', error.message];
  const message = error instanceof StorageUnavailable ? error.message : 'an upload failed';
  request.log.error({ err: error, requestId: request.id }, message);
  return broken;
}

/**
 * Reads the content type from the raw headers. Our hooks remove it before a body is parsed, because every other body is
 * JSON.
 */
function contentTypeOf({ rawHeaders }: IncomingMessage): string {
  const at = rawHeaders.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === 'content-type');
  return at === -1 ? '' : (rawHeaders[at + 1] ?? '');
}

const escapes: Readonly<Record<string, string>> = { '<': '&lt;', '>': '&gt;', '&': '&amp;', '"': '&quot;' };

function xml(root: string, children: Readonly<Record<string, string>>): string {
  const inner = Object.entries(children)
    .map(([name, text]) => `<${name}>${text.replace(/[<>&"]/g, (char) => escapes[char] ?? '')}</${name}>`)
    .join('');
  return `<?xml version="1.0" encoding="UTF-8"?>\n<${root}>${inner}</${root}>`;
}
