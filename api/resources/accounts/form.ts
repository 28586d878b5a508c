/**
 * Forms for people: draws them from a small table, reads them, checks where they come from, and shows one that was refused
 * again, with each problem beside its field. Forms need no script.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { csrfToken, isCsrfTokenValid } from '#api/auth/cookies.ts';
import type { Context } from '#api/context.ts';
import { badRequest, forbidden } from '#api/errors.ts';
import { asApiError } from '#api/http/error-handler.ts';
import { prefersHtml } from '#api/http/error-page.ts';
import { alert } from '#api/http/page.ts';
import { parseJsonBody } from '#api/http/request-body.ts';
import { isRecord } from '#api/values/schemas.ts';
import { escapeHtml } from '#shared/page.ts';

const FORM_BYTES_MAX = 16_384;
/** Maximum length of a text that a page repeats. */
const TEXT_LENGTH_MAX = 500;

export interface Field {
  readonly name: string;
  readonly label: string;
  readonly type: 'text' | 'email' | 'password' | 'select';
  readonly autocomplete?: string;
  readonly hint?: string;
  /** Values and texts of a select. */
  readonly options?: readonly (readonly [value: string, text: string])[];
}

export interface Form {
  /** The route that it is sent to. */
  readonly action: string;
  readonly fields: readonly Field[];
  /** Names of hidden fields. */
  readonly hidden?: readonly string[];
  readonly submit: string;
  /** Default: primary, for the main action of a page. */
  readonly look?: 'primary' | 'plain' | 'danger';
}

/** A form shows these besides its fields. */
export interface Shown {
  readonly status: number;
  /** HTML above the form. */
  readonly message: string;
  /** Values of the fields: the query of the page, or what was sent. */
  readonly given: unknown;
  /** Mistakes by field name. They complete a sentence that begins with the label. */
  readonly errors: Readonly<Record<string, unknown>>;
}

/** Draws forms of one page. Ids of fields are their names, so a page has each name once. */
export function formsOf(
  context: Context,
  reply: FastifyReply,
  { given, errors }: Pick<Shown, 'given' | 'errors'>,
): (form: Form) => string {
  const token = csrfToken(reply, context);
  const textOf = (name: string): string => fieldOf(given, name).slice(0, TEXT_LENGTH_MAX);
  return ({ action, fields, hidden = [], submit, look = 'primary' }) =>
    [
      `<form method="post" action="${escapeHtml(reply.server.basePath + action)}">`,
      hiddenField('csrfToken', token),
      ...hidden.map((name) => hiddenField(name, textOf(name))),
      ...fields.map((field) => drawField(field, textOf(field.name), errors[field.name])),
      `<button class="${look}">${escapeHtml(submit)}</button>`,
      '</form>',
    ].join('\n');
}

function drawField({ name, label, type, autocomplete, hint, options }: Field, text: string, error: unknown) {
  const notes = [
    ...(hint === undefined ? [] : [['hint', hint]]),
    ...(typeof error === 'string' ? [['error', `${label} ${error}`]] : []),
  ];
  const attributes = [
    `id="${name}" name="${name}"`,
    ...(autocomplete === undefined ? [] : [`autocomplete="${autocomplete}"`]),
    ...(typeof error === 'string' ? ['aria-invalid="true"'] : []),
    ...(notes.length === 0
      ? []
      : [`aria-describedby="${notes.map(([kind]) => `${name}-${kind}`).join(' ')}"`]),
  ].join(' ');
  // A page never repeats a password.
  const value = type === 'password' ? '' : ` value="${escapeHtml(text)}"`;
  const choices = options?.map(
    ([one, choice]) =>
      `<option value="${escapeHtml(one)}"${one === text ? ' selected' : ''}>${escapeHtml(choice)}</option>`,
  );
  return [
    `<div class="field"><label for="${name}">${escapeHtml(label)}</label>`,
    choices === undefined
      ? `<input ${attributes} type="${type}" required${value}>`
      : `<select ${attributes}>${choices.join('')}</select>`,
    ...notes.map(([kind, note = '']) => `<p class="${kind}" id="${name}-${kind}">${escapeHtml(note)}</p>`),
    '</div>',
  ].join('\n');
}

function hiddenField(name: string, value: string): string {
  return `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`;
}

/**
 * A page on another subdomain can set a cookie and token that it got from us, and log a visitor in as itself.
 * Browsers report that in `sec-fetch-site`. They send no useful Origin here, because our pages set no-referrer.
 */
export function isFormOurs(request: FastifyRequest, { signer }: Pick<Context, 'signer'>): boolean {
  const site = request.headers['sec-fetch-site'];
  if (site === 'same-site' || site === 'cross-site') return false;
  return isCsrfTokenValid(request.cookies, fieldOf(request.body, 'csrfToken'), signer);
}

/** Refuses forms that are not ours, on all routes of this plugin that take forms. */
export function requireOwnForms(app: FastifyInstance, context: Pick<Context, 'signer'>): void {
  app.addHook('preValidation', async (request) => {
    if (request.method !== 'POST' || isFormOurs(request, context)) return;
    throw forbidden('The form was too old. Please send it again.');
  });
}

/** Whether a person has sent the form of a page. Programs ask for JSON, or for no HTML. */
export function isFromPage(request: FastifyRequest): boolean {
  return prefersHtml(request) && !wantsJson(request.body);
}

/** Answers people whose form was refused with the form, and programs with the error. */
export function showAgain(
  app: FastifyInstance,
  show: (request: FastifyRequest, reply: FastifyReply, shown: Shown) => FastifyReply | Promise<FastifyReply>,
): void {
  app.setErrorHandler((cause, request, reply) => {
    const error = asApiError(cause);
    if (error.code === 'not_authenticated' && prefersHtml(request))
      return reply.redirect(`${app.basePath}/auth/login?notice=log-in`, 303);
    if (request.method !== 'POST' || !isFromPage(request) || error.code === 'internal_server_error')
      throw cause;
    if (error.retryAfterSeconds !== null) reply.header('retry-after', error.retryAfterSeconds);
    const isMarked = error.code === 'invalid_fields';
    return show(request, reply, {
      status: error.statusCode,
      message: alert(isMarked ? 'Please check what is marked below.' : escapeHtml(error.message)),
      given: request.body,
      errors: isMarked ? error.details : {},
    });
  });
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
 * @throws ApiError bad_request for malformed JSON, and for a form that is too long, or with a NUL character
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
