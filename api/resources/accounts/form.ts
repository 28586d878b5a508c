/**
 * Forms for people. A form stands on a page and sends to a route, which answers programs with data. People get the next
 * page, or the form again with the problem beside its field. Forms need no script.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { setCsrfCookie } from '#api/auth/cookies.ts';
import { csrfToken, isCsrfTokenValid } from '#api/auth/csrf.ts';
import type { Context } from '#api/context.ts';
import { type ApiError, badRequest, forbidden } from '#api/errors.ts';
import { asApiError } from '#api/http/error-handler.ts';
import { prefersHtml } from '#api/http/error-page.ts';
import { sendPage } from '#api/http/page.ts';
import { alert, type Field, field, form, hidden, links } from '#api/http/page-form.ts';
import { parseJsonBody } from '#api/http/request-body.ts';
import { isRecord } from '#api/values/schemas.ts';
import { escapeHtml } from '#shared/page.ts';

const FORM_BYTES_MAX = 16_384;
/** Maximum length of a text that a page repeats. */
const TEXT_LENGTH_MAX = 500;

export const SIGN_UP_PATH = '/auth/signup';

export interface Form {
  /** The path of its page. */
  readonly path: string;
  /** The route that it is sent to. */
  readonly action: string;
  readonly title: string;
  /** HTML above the form. */
  readonly lead: string;
  readonly fields: readonly Field[];
  /** Names of hidden fields, whose values come from the address of the page. */
  readonly hidden: readonly string[];
  readonly submit: string;
  /** Whether a mail follows. */
  readonly isMailed: boolean;
  readonly links: readonly (readonly [path: string, text: string])[];
}

interface Shown {
  readonly status: number;
  /** HTML above the form. */
  readonly message: string;
  /** Messages by field name. */
  readonly errors: Readonly<Record<string, string>>;
}

/** @param given the typed values, or the query of the address */
export function sendForm(
  context: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  shown: Form,
  given: unknown,
  { status = 200, message = '', errors = {} }: Partial<Shown> = {},
): FastifyReply {
  const { basePath } = reply.server;
  const { isSignupEnabled } = context.config;
  const shownLinks = shown.links.filter(([path]) => isSignupEnabled || path !== SIGN_UP_PATH);
  const textOf = (name: string): string => fieldOf(given, name).slice(0, TEXT_LENGTH_MAX);
  return sendPage(reply, status, shown.title, [
    message,
    ...(shown.isMailed ? missingServer(context) : []),
    shown.lead,
    form(
      basePath + shown.action,
      [
        protect(context, request, reply),
        ...shown.hidden.map((name) => hidden(name, textOf(name))),
        ...shown.fields.map((one) =>
          field({
            ...one,
            value: one.type === 'password' ? undefined : textOf(one.name),
            error: errors[one.name],
          }),
        ),
      ],
      shown.submit,
    ),
    links(shownLinks.map(([path, text]) => [basePath + path, text])),
  ]);
}

/** Returns a warning for pages that promise a mail; empty if there is a mail server. */
export function missingServer({ mailer }: Pick<Context, 'mailer'>): readonly string[] {
  if (mailer.hasServer) return [];
  const advice = 'Its operator finds the mail in the table mailOutbox.';
  return [alert(`This service has no mail server (SMTP_URL), so no mail arrives. ${advice}`)];
}

/** Sets the cookie that protects a form. @returns the hidden field that belongs to it */
export function protect(
  { signer, random, config }: Pick<Context, 'signer' | 'random' | 'config'>,
  request: FastifyRequest,
  reply: FastifyReply,
): string {
  const { token, cookie } = csrfToken(request.cookies, signer, random);
  setCsrfCookie(reply, cookie, config.publicUrl);
  return hidden('csrfToken', token);
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

/** Whether a person has sent the form of a page. Programs ask for JSON, or for no HTML. */
export function isFromPage(request: FastifyRequest): boolean {
  return prefersHtml(request) && !wantsJson(request.body);
}

/** Answers people whose form was refused with the form. Programs get the error. */
export function answerForms(app: FastifyInstance, context: Context, forms: readonly Form[]): void {
  const formOf = (request: FastifyRequest): Form | undefined =>
    isFromPage(request) ? forms.find(({ action }) => action === request.routeOptions.url) : undefined;

  app.addHook('preValidation', async (request) => {
    if (formOf(request) === undefined || isFormOurs(request, context)) return;
    throw forbidden('The form was too old. Please send it again.');
  });

  app.setErrorHandler((cause, request, reply) => {
    const sent = formOf(request);
    const error = asApiError(cause);
    if (sent === undefined || error.code === 'internal_server_error') throw cause;
    if (error.retryAfterSeconds !== null) reply.header('retry-after', error.retryAfterSeconds);
    const errors = error.code === 'invalid_fields' ? fieldErrors(sent, error) : {};
    const text = Object.keys(errors).length > 0 ? 'Please check what is marked below.' : error.message;
    const shown = { status: error.statusCode, message: alert(escapeHtml(text)), errors };
    return sendForm(context, request, reply, sent, request.body, shown);
  });
}

/** Returns messages by field name, as sentences: `must have …` becomes `Name must have …`. */
function fieldErrors({ fields }: Form, { details }: ApiError): Readonly<Record<string, string>> {
  return Object.fromEntries(
    fields.flatMap(({ name, label }) => {
      const text = details[name];
      if (typeof text !== 'string') return [];
      if (text === 'Required') return [[name, `${label} is required`]];
      return [[name, text.startsWith('must ') ? `${label} ${text}` : `Here ${text}`]];
    }),
  );
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

/** Describes a form, or JSON with the same fields. @param names of fields besides those of every form */
export function formFields(...names: readonly string[]) {
  const all = [...names, 'csrfToken', 'callbackUrl', 'json'];
  const shape = Type.Partial(Type.Object(Object.fromEntries(all.map((name) => [name, Type.String()]))));
  return { 'application/x-www-form-urlencoded': shape, 'application/json': shape };
}
