/**
 * Accounts: sign up, forget and reset a password, get another verification mail. No reply reveals whether an address
 * has an account.
 *
 * Callers: anybody, limited by address.
 */
import { Type } from 'typebox';
import { emailIn, passwordProblem } from '#api/auth/password.ts';
import type { Routes } from '#api/context.ts';
import { badRequest, invalidFields, NamedError } from '#api/errors.ts';
import { redirectTo } from '#api/http/media.ts';
import { plainName } from '#api/resources/organizations/name.ts';
import { answerForms } from './account-forms.ts';
import { forgotPassword, resendVerification, resetPage, resetPassword, signUp } from './actions.ts';
import { acceptForms } from './form.ts';
import { refuseWhileClosed } from './signup.ts';

const done = {
  200: Type.Object({ data: Type.Object({ success: Type.String() }) }),
  303: redirectTo('the next page, for who sent the form of a page'),
};
/** The form must have our token, and sign-up may be closed. */
const refuses = ['bad_request', 'forbidden'] as const;
const Text = Type.String();

export const accountRoutes: Routes = async (app, { context }) => {
  acceptForms(app);
  answerForms(app, context);

  app.post(
    '/api/auth/signup',
    {
      schema: { body: Type.Object({ name: Text, email: Text, password: Text }), response: done },
      config: { limit: 'auth.signup', refuses },
      onRequest: refuseWhileClosed(context),
    },
    async (request) => {
      const { password } = request.body;
      const name = plainName(request.body.name);
      const email = emailIn(request.body.email);
      const problem = passwordProblem(password);
      if (problem !== null) throw invalidFields({ password: problem });
      await signUp(context, request, { name, email, password });
      return success('Check your mailbox: open the link in the mail to confirm your address');
    },
  );

  app.post(
    '/api/auth/resend-verification',
    {
      schema: {
        body: Type.Object({ email: Type.Optional(Text), token: Type.Optional(Text) }),
        response: done,
      },
      config: { limit: 'auth.verifyEmail', refuses },
    },
    async (request, reply) => {
      const { email, token } = request.body;
      if (email === undefined && token === undefined) throw invalidFields({ email: 'Required' });
      resendVerification(
        context,
        reply,
        email === undefined ? { token: token ?? '' } : { email: emailIn(email) },
      );
      return success('If this address waits for its confirmation, a mail is on its way');
    },
  );

  app.post(
    '/api/auth/forgot-password',
    {
      schema: { body: Type.Object({ email: Text }), response: done },
      config: { limit: 'auth.forgotPassword', refuses },
    },
    async (request, reply) => {
      forgotPassword(context, reply, emailIn(request.body.email), resetPage(context.config.publicUrl));
      return success('If this address has an account, a mail is on its way');
    },
  );

  app.post(
    '/api/auth/reset-password',
    {
      schema: {
        body: Type.Object({
          token: Type.Optional(Text),
          password: Type.Optional(Text),
          newPassword: Type.Optional(Type.String({ description: 'Clients of Better Auth send this name.' })),
        }),
        querystring: Type.Object({ token: Type.Optional(Text) }),
        response: {
          ...done,
          200: Type.Object({ ...done[200].properties, status: Type.Boolean() }),
        },
      },
      config: { refuses: [...refuses, 'too_many_requests'] },
    },
    async (request) => {
      const { body, query } = request;
      const token = body.token ?? query.token;
      const name = body.newPassword === undefined ? 'password' : 'newPassword';
      const password = body[name];
      if (token === undefined || password === undefined) {
        throw invalidFields({
          ...(token === undefined ? { token: 'Required' } : {}),
          ...(password === undefined ? { [name]: 'Required' } : {}),
        });
      }
      const problem = passwordProblem(password);
      if (problem !== null) throw invalidFields({ [name]: problem });
      if (!(await resetPassword(context, request, { token, password }))) {
        throw name === 'password'
          ? linkEnded()
          : new NamedError('bad_request', 'INVALID_TOKEN', 'Invalid token');
      }
      return {
        ...success('The password is changed, and everybody is logged out; log in with the new one'),
        status: true,
      };
    },
  );
};

function linkEnded() {
  return badRequest('This link has ended or was used; ask for a new one at /auth/forgot-password');
}

function success(text: string) {
  return { data: { success: text } };
}
