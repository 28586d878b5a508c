/** Routes to sign in on the page with the admin token, and to sign out. */
import type { FastifyInstance } from 'fastify';
import type { XStatic } from 'typebox/schema';
import { isoTime } from '#shared/clock.ts';
import type { AdminContext } from './context.ts';
import { isSame, sessionOf } from './guard.ts';
import { input } from './input.ts';
import { cookieOf, SESSION_MS } from './sessions.ts';

const signInSchema = input({ token: { type: 'string', minLength: 1, maxLength: 8192 } }, ['token']);

/** Belongs to the admin API's scope. It needs no token, but refuses pages of other origins. */
export function sessionRoutes(app: FastifyInstance, options: AdminContext): void {
  const { token, log, sessions } = options;
  const config = { isOpen: true };

  app.get('/session', { config }, async (request) => {
    const session = sessionOf(request, sessions);
    return {
      isNeeded: token !== null,
      isSignedIn: session !== null,
      endsAt: session === null ? null : isoTime(session.endsAt),
    };
  });

  app.post<{ Body: XStatic<typeof signInSchema> }>(
    '/session',
    { config, schema: { body: signInSchema } },
    async (request, reply) => {
      const { ip, headers } = request;
      if (token === null)
        return reply.code(409).send({ message: 'no token is set, so nobody has to sign in' });
      const waitMs = sessions.waitMs(ip);
      if (waitMs > 0) {
        const seconds = Math.ceil(waitMs / 1000);
        return reply
          .code(429)
          .header('retry-after', String(seconds))
          .send({ message: `too many wrong tokens; try again in ${seconds} s` });
      }
      if (!isSame(request.body.token, token)) {
        sessions.noteMistake(ip);
        log.warn({ from: ip }, 'a wrong admin token on the page');
        return reply.code(401).send({ message: 'this is not the value of GATEWAY_ADMIN_TOKEN' });
      }
      const { name, cookie, proof, endsAt } = sessions.begin();
      log.info({ by: `session ${name}, from ${ip}`, change: 'sign-in' }, 'admin change');
      const isSecure = headers.origin?.startsWith('https:') === true;
      return reply
        .header('set-cookie', cookieOf(cookie, SESSION_MS / 1000, isSecure))
        .send({ proof, endsAt: isoTime(endsAt) });
    },
  );

  app.delete('/session', async (request, reply) => {
    const session = sessionOf(request, sessions);
    if (session !== null) {
      sessions.end(request.headers.cookie);
      log.info({ by: `session ${session.name}, from ${request.ip}`, change: 'sign-out' }, 'admin change');
    }
    return reply
      .code(204)
      .header('set-cookie', cookieOf('', 0, false))
      .send();
  });
}
