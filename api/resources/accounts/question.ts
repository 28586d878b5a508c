/** The page that asks a second time before something is deleted for good: what is deleted has to be typed. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '#api/context.ts';
import { sendPage } from '#api/http/page.ts';
import { type Field, field, form, links } from '#api/http/page-form.ts';
import { ACCOUNT_PATH } from './form.ts';
import { protect } from './protection.ts';

interface Question {
  /** The path of the page, and of the route that deletes. */
  readonly path: string;
  readonly title: string;
  /** HTML. */
  readonly lead: readonly string[];
  /** The field with what is deleted. With its error the status is 400. */
  readonly typed: Field;
  readonly submit: string;
}

export function sendQuestion(
  context: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  { path, title, lead, typed, submit }: Question,
): FastifyReply {
  const { basePath } = reply.server;
  return sendPage(reply, typed.error === undefined ? 200 : 400, title, [
    ...lead,
    '<p>Nobody can bring it back.</p>',
    form(`${basePath}${path}`, [protect(context, request, reply), field(typed)], submit, 'danger'),
    backToAccount(basePath),
  ]);
}

export function backToAccount(basePath: string): string {
  return links([[`${basePath}${ACCOUNT_PATH}`, 'Back to your account']]);
}
