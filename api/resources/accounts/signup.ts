/**
 * Everybody may sign up, or nobody. An organization without people is no exception: the operator adds people with
 * `npm run people`, and whoever signs up gets a new organization.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '#api/context.ts';
import { forbidden } from '#api/errors.ts';
import { prefersHtml } from '#api/http/error-page.ts';
import { sendPage } from '#api/http/page.ts';
import { alert, links } from '#api/http/page-form.ts';
import { refusing } from '#api/http/refuses.ts';

const CLOSED = 'Sign-up is closed on this server. Ask its operator for an account.';

/** A hook that ends the request while sign-up is closed. Browsers get a page. @throws ApiError forbidden */
export function refuseWhileClosed({ config }: Pick<Context, 'config'>) {
  const refuse = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    if (config.isSignupEnabled) return;
    if (!prefersHtml(request)) throw forbidden(CLOSED);
    const { basePath } = reply.server;
    await sendPage(reply, 403, 'Sign-up is closed', [
      alert(CLOSED),
      links([[`${basePath}/auth/login`, 'Log in']]),
    ]);
  };
  return refusing(refuse, 'forbidden');
}
