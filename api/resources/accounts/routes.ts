/**
 * Accounts: sign up, forget and reset a password, get another verification mail. No reply reveals whether an address
 * has an account.
 *
 * Callers: anybody, limited by address.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { emailIn, passwordProblem } from '#api/auth/password.ts';
import type { Routes } from '#api/context.ts';
import { badRequest, invalidFields } from '#api/errors.ts';
import { plainName } from '#api/resources/organizations/name.ts';
import { forgotPassword, resendVerification, resetPassword, signUp } from './actions.ts';
import { acceptForms, answerForms, isFromPage } from './form.ts';
import { checkOpen, forms, nextPages } from './pages.ts';

const response = { 200: Type.Object({ data: Type.Object({ success: Type.String() }) }) };
const Text = Type.String();

export const accountRoutes: Routes = async (app, { context }) => {
  acceptForms(app);
  answerForms(app, context, forms);

  app.post(
    '/api/auth/signup',
    {
      schema: {
        summary: 'Create an account',
        body: Type.Object({ name: Text, email: Text, password: Text }),
        response,
      },
      config: { limit: 'auth.signup' },
      onRequest: async () => checkOpen(context),
    },
    async (request, reply) => {
      const name = plainName(request.body.name);
      const email = emailIn(request.body.email);
      const password = checkedPassword(request.body.password);
      await signUp(context, { name, email, password });
      return done(request, reply, 'Check your mailbox: open the link in the mail to confirm your address');
    },
  );

  app.post(
    '/api/auth/resend-verification',
    {
      schema: {
        summary: 'Send the verification mail again',
        body: Type.Object({ email: Type.Optional(Text), token: Type.Optional(Text) }),
        response,
      },
      config: { limit: 'auth.verifyEmail' },
    },
    async (request, reply) => {
      const { email, token = '' } = request.body;
      if (email === undefined && token === '') throw invalidFields({ email: 'Required' });
      resendVerification(context, reply, email === undefined ? { token } : { email: emailIn(email) });
      return done(request, reply, 'If this address waits for its confirmation, a mail is on its way');
    },
  );

  app.post(
    '/api/auth/forgot-password',
    {
      schema: {
        summary: 'Ask for a mail to choose a new password',
        body: Type.Object({ email: Text }),
        response,
      },
      config: { limit: 'auth.forgotPassword' },
    },
    async (request, reply) => {
      forgotPassword(context, reply, emailIn(request.body.email));
      return done(request, reply, 'If this address has an account, a mail is on its way');
    },
  );

  app.post(
    '/api/auth/reset-password',
    {
      schema: {
        summary: 'Choose a new password with the token of a mail',
        body: Type.Object({ token: Text, password: Text }),
        response,
      },
    },
    async (request, reply) => {
      const password = checkedPassword(request.body.password);
      if (!(await resetPassword(context, request, { token: request.body.token, password }))) {
        throw badRequest('This link has ended or was used; ask for a new one at /auth/forgot-password');
      }
      return done(
        request,
        reply,
        'The password is changed, and everybody is logged out; log in with the new one',
      );
    },
  );
};

/** @throws ApiError invalid_fields */
function checkedPassword(password: string): string {
  const problem = passwordProblem(password);
  if (problem !== null) throw invalidFields({ password: problem });
  return password;
}

/** Replies to programs with a text, and sends people to the next page. */
function done(request: FastifyRequest, reply: FastifyReply, success: string) {
  const next = nextPages[request.routeOptions.url ?? ''];
  if (next !== undefined && isFromPage(request))
    return reply.redirect(`${reply.server.basePath}${next}`, 303);
  return { data: { success } };
}
