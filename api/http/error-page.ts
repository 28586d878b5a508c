/** Shows errors as pages in a browser. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ApiError } from '#api/errors.ts';
import { escapeHtml } from '#shared/page.ts';
import { links, sendPage } from './page.ts';

/** Programs and scripts use the paths below these, and read errors as JSON. Forms are sent to `/api/auth`. */
const PROGRAM_PATHS = /^\/+(?:api(?!\/auth\/)|storage|js|health)(?:[/?#]|$)/;

/** Whether the request asks for HTML, as browsers do when somebody opens an address or sends a form. */
export function prefersHtml(request: FastifyRequest): boolean {
  return request.headers.accept?.includes('text/html') === true;
}

export function wantsErrorPage(request: FastifyRequest): boolean {
  return prefersHtml(request) && hasErrorPages(request.url);
}

export function hasErrorPages(path: string): boolean {
  return !PROGRAM_PATHS.test(path);
}

const titles: Readonly<Record<number, string>> = {
  401: 'Please log in',
  403: 'This is not allowed',
  404: 'There is no such page',
  429: 'Too many requests',
  503: 'Please wait a moment',
};

export function sendErrorPage(reply: FastifyReply, { statusCode, code, message }: ApiError): FastifyReply {
  const { basePath } = reply.server;
  const isLost = code === 'not_found';
  return sendPage(reply, statusCode, titles[statusCode] ?? 'This did not work', [
    `<p>${isLost ? 'Check the address, or begin at the first page.' : escapeHtml(message)}</p>`,
    links([
      [`${basePath}/`, 'First page'],
      [`${basePath}/auth/login`, 'Log in'],
    ]),
  ]);
}
