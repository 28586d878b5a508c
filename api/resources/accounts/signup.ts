/** Decides whether everybody may sign up. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '#api/context.ts';
import { forbidden } from '#api/errors.ts';
import { prefersHtml } from '#api/http/error-page.ts';
import { sendPage } from '#api/http/page.ts';
import { alert, links } from '#api/http/page-form.ts';
import { refusing } from '#api/http/refuses.ts';
import { hasMembers } from '#api/resources/organizations/store.ts';

const CLOSED = 'Sign-up is closed on this server. Ask its operator for an account.';

/** On a server without any members, the first person may sign up, whatever the setting. */
export async function isSignupOpen({ db, config }: Pick<Context, 'db' | 'config'>): Promise<boolean> {
  return config.isSignupEnabled || !(await hasMembers(db));
}

/** A hook that ends the request while sign-up is closed. Browsers get a page. @throws ApiError forbidden */
export function refuseWhileClosed(context: Pick<Context, 'db' | 'config'>) {
  const refuse = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    if (await isSignupOpen(context)) return;
    if (!prefersHtml(request)) throw forbidden(CLOSED);
    const { basePath } = reply.server;
    await sendPage(reply, 403, 'Sign-up is closed', [
      alert(CLOSED),
      links([[`${basePath}/auth/login`, 'Log in']]),
    ]);
  };
  return refusing(refuse, 'forbidden');
}
