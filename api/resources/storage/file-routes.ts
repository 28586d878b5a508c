/**
 * Stored files. Uploads are content of other people on our origin. So the type of a file follows from its extension and
 * is never guessed, documents are downloaded rather than shown, and everything that is shown runs in a sandbox without
 * scripts.
 *
 * Callers: anybody may read public files. Private ones need an API key or a session with the right to read. Deleting
 * needs a key with the right to manage, or a session with the right to write.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { principalOf } from '#api/auth/plugin.ts';
import { may, type Principal } from '#api/auth/principal.ts';
import type { Routes } from '#api/context.ts';
import { badRequest, existing, notAuthenticated, unauthorized } from '#api/errors.ts';
import { matchesEtag } from '#api/http/conditional.ts';
import { binary, media, withoutBody } from '#api/http/media.ts';
import { findWorkspace } from '#api/resources/workspaces/store.ts';
import { findFile, removeFiles } from '#api/storage/files.ts';
import { type Access, extensionOf, isAccess, keyOf, locationOf, nameProblem } from '#api/storage/key.ts';
import type { ByteRange, StoredFile } from '#api/storage/storage.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { nameForPeople } from './file-name.ts';
import { presentationOf } from './file-types.ts';
import { select } from './ranges.ts';
import { withStorageErrors } from './storage-errors.ts';

const PATH = '/storage/:workspaceId/:accessType/*';
/** Path parameters, each percent-decoded once. */
interface FileParams {
  readonly workspaceId: string;
  readonly accessType: string;
  readonly '*': string;
}

/** Pictures and players need no script. `sandbox` gives their content an origin of its own. */
const CONTENT_SECURITY =
  "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'self'; sandbox";
const bytes = 'application/octet-stream';
const fileReplies = {
  200: media(bytes, binary, 'The file, with the content type of its name.'),
  206: media(bytes, binary, 'The requested range.'),
  304: withoutBody('Not changed since the reply whose `etag` came as `if-none-match`.'),
  416: withoutBody('The file ends before the requested range.'),
};
/** Cache headers of files whose content cannot change any more. */
const cacheControl: Readonly<Record<Access, string>> = {
  public: 'public, max-age=31536000, immutable',
  private: 'no-store, no-cache, must-revalidate',
};

export const fileRoutes: Routes = async (app, { context }) => {
  const { clock, db, storage } = context;

  app.route<{ Params: FileParams }>({
    method: ['GET', 'HEAD'],
    url: PATH,
    schema: { summary: 'Read a file; a private one with a key or a session', response: fileReplies },
    async handler(request, reply) {
      const { access, name } = checked(request.params);
      const principal = access === 'private' ? await app.authenticate(request, 'any') : null;
      if (access === 'private' && principal === null) throw notAuthenticated();
      const workspaceId = await reachable(request.params.workspaceId, (id) => {
        return access === 'public' || (principal !== null && may(principal, id, 'read'));
      });
      const location = locationOf(workspaceId, access, name);
      const key = location === null ? '' : keyOf(location);
      // A copy to another store may bring a deleted object back. Its row stays deleted.
      existing(await findFile(db, key), 'file', name);
      const file = existing(await withStorageErrors(storage.find(key)), 'file', name);
      reply.header('cache-control', cacheControl[access]);
      const range = describe(request, reply, file, name);
      if (range === null) return reply.send();
      const stream = await withStorageErrors(storage.read(key, file, range));
      return reply.send(existing(stream, 'file', name));
    },
  });

  app.delete<{ Params: FileParams }>(
    PATH,
    {
      schema: { summary: 'Delete a file', response: { 200: Type.Object({ data: Type.String() }) } },
      config: { credentials: 'any', limit: 'storage.delete' },
    },
    async (request) => {
      const { access, name } = checked(request.params);
      const principal = principalOf(request);
      const workspaceId = await reachable(request.params.workspaceId, (id) => mayDelete(principal, id));
      const location = locationOf(workspaceId, access, name);
      if (location !== null) await removeFiles(db, { key: keyOf(location) }, toTimestamp(clock()));
      return { data: 'File deleted successfully' };
    },
  );

  /** @returns the id of the workspace @throws ApiError not_found, unauthorized */
  async function reachable(scopeId: string, isAllowed: (workspaceId: string) => boolean): Promise<string> {
    const workspace = existing(await findWorkspace(db, scopeId), 'Workspace', scopeId);
    if (!isAllowed(workspace.id)) throw unauthorized();
    return workspace.id;
  }
};

/** Sets the status and the headers of the reply. @returns the bytes of its body; null if it has none */
function describe(
  { method, headers }: FastifyRequest,
  reply: FastifyReply,
  file: StoredFile,
  name: string,
): ByteRange | null {
  const { contentType, isInline } = presentationOf(extensionOf(name));
  reply.headers({
    'accept-ranges': 'bytes',
    'content-disposition': disposition(isInline, name),
    'content-security-policy': CONTENT_SECURITY,
    etag: file.etag,
  });
  if (matchesEtag(headers['if-none-match'], file.etag)) {
    reply.code(304);
    return null;
  }
  // Ranges are defined for GET alone (RFC 9110 14.2), and a part must be of the version that the client has.
  const { 'if-range': known = file.etag, range } = headers;
  const selection = select(file.size, method === 'GET' && known === file.etag ? range : undefined);
  if (selection === 'unsatisfiable') {
    reply.code(416).header('cache-control', 'no-store').header('content-range', `bytes */${file.size}`);
    return null;
  }
  const { first, last } = selection ?? { first: 0, last: file.size - 1 };
  if (selection !== null) reply.code(206).header('content-range', `bytes ${first}-${last}/${file.size}`);
  reply.header('content-type', contentType).header('content-length', last - first + 1);
  return method === 'HEAD' || file.size === 0 ? null : { first, last };
}

/** @throws ApiError bad_request */
function checked({ accessType, '*': name }: FileParams): { readonly access: Access; readonly name: string } {
  if (!isAccess(accessType))
    throw badRequest('Invalid access type', { accessType: 'must be public or private' });
  const problem = nameProblem(name);
  if (problem !== null) throw badRequest('Invalid file name', { fileName: problem });
  return { access: accessType, name };
}

/** Whether the caller may delete files. A session needs the right to write, a key the right to manage. */
function mayDelete(principal: Principal, workspaceId: string): boolean {
  return may(principal, workspaceId, principal.kind === 'session' ? 'write' : 'manage');
}

/** Formats the file name by RFC 6266: in ASCII for old readers, and unchanged for all others. */
function disposition(isInline: boolean, name: string): string {
  const shown = nameForPeople(name.split('/').at(-1) ?? name);
  const ascii = shown.replace(/[^ -~]/g, '_').replace(/["\\%]/g, '_');
  const encoded = encodeURIComponent(shown).replace(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16)}`,
  );
  return `${isInline ? 'inline' : 'attachment'}; filename="${ascii}"; filename*=UTF-8''${encoded}`;
}
