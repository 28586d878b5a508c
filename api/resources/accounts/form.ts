/** Reads requests to `/api/auth`: a form, or JSON. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { badRequest } from '#api/errors.ts';
import { parseJsonBody } from '#api/http/request-body.ts';
import { isRecord } from '#api/values/schemas.ts';

const FORM_BYTES_MAX = 16_384;

/** The page after a login without another destination. */
export const ACCOUNT_PATH = '/account';
export const ACCOUNT_DELETION_PATH = `${ACCOUNT_PATH}/delete`;

/** @param id of the workspace, or the parameter of the route */
export function workspaceDeletionPath(id: string): string {
  return `${ACCOUNT_PATH}/workspaces/${id}/delete`;
}

/** Accepts forms. Within this plugin, a body that begins like a JSON object is JSON, and any other body is a form. */
export function acceptForms(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    '*',
    { parseAs: 'buffer' },
    async (_request: FastifyRequest, body: string | Buffer) =>
      parseFormOrJson(typeof body === 'string' ? Buffer.from(body) : body),
  );
}

/**
 * @returns the fields of a form, the first value of each name
 * @throws ApiError malformed_json; bad_request for a form that breaks off, or with a NUL character
 */
function parseFormOrJson(body: Buffer): unknown {
  // 0x7b is an opening brace. A form would percent-encode it.
  if (body.toString('latin1', 0, 64).trimStart().charCodeAt(0) === 0x7b) return parseJsonBody(body);
  if (body.length > FORM_BYTES_MAX) throw badRequest(`A form has at most ${FORM_BYTES_MAX} bytes`);
  const fields = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(body.toString('utf8'))) {
    if (value.includes('\0')) throw badRequest('The form contains a NUL character');
    if (!fields.has(name)) fields.set(name, value);
  }
  return Object.fromEntries(fields);
}

export function fieldOf(body: unknown, name: string): string {
  const value = isRecord(body) && Object.hasOwn(body, name) ? body[name] : undefined;
  return typeof value === 'string' ? value : '';
}

/** Whether the caller wants JSON (`json=true`) instead of a redirect. */
export function wantsJson(body: unknown): boolean {
  return fieldOf(body, 'json') === 'true' || (isRecord(body) && body.json === true);
}

/**
 * Returns the page after a login: the given address if it is on our own origin, and otherwise our start page.
 *
 * @param given absolute, or a path
 */
export function callbackUrl(given: string, publicUrl: string): string {
  const url = given !== '' && URL.canParse(given, publicUrl) ? new URL(given, publicUrl) : null;
  return url !== null && url.origin === new URL(publicUrl).origin ? url.href : publicUrl;
}

/** Returns the page that a login leads to: the named one, or that of the account. */
export function targetIn(fields: unknown, publicUrl: string): string {
  return callbackUrl(fieldOf(fields, 'callbackUrl') || `${publicUrl}${ACCOUNT_PATH}`, publicUrl);
}

/**
 * Returns the path of a page. Browsers keep their host, whose cookies they have and which may differ from PUBLIC_URL.
 */
export function onSameHost(url: string): string {
  const { pathname, search, hash } = new URL(url);
  // Two slashes at the beginning would name another host.
  return `${pathname.replace(/^\/+/, '/')}${search}${hash}`;
}

/** Describes a form, or JSON with the same fields. @param names of fields besides those of every form */
export function formFields(...names: readonly string[]) {
  const all = [...names, 'csrfToken', 'callbackUrl', 'json'];
  const shape = Type.Partial(Type.Object(Object.fromEntries(all.map((name) => [name, Type.String()]))));
  return { 'application/x-www-form-urlencoded': shape, 'application/json': shape };
}
