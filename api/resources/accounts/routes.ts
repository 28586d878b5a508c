/**
 * Accounts: sign up, forget and reset a password, get another verification mail. No reply reveals whether an address
 * has an account.
 *
 * Callers: anybody, limited by address.
 */
import { Type } from 'typebox';
import { emailIn, passwordProblem } from '#api/auth/password.ts';
import type { Routes } from '#api/context.ts';
import { badRequest, invalidFields } from '#api/errors.ts';
import { redirectTo } from '#api/http/media.ts';
import { plainName } from '#api/resources/organizations/name.ts';
import { answerForms } from './account-forms.ts';
import { forgotPassword, resendVerification, resetPassword, signUp } from './actions.ts';
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
      forgotPassword(context, reply, emailIn(request.body.email));
      return success('If this address has an account, a mail is on its way');
    },
  );

  app.post(
    '/api/auth/reset-password',
    {
      schema: {
        body: Type.Object({ token: Text, password: Text }),
        response: done,
      },
      config: { refuses: [...refuses, 'too_many_requests'] },
    },
    async (request) => {
      const { token, password } = request.body;
      const problem = passwordProblem(password);
      if (problem !== null) throw invalidFields({ password: problem });
      if (!(await resetPassword(context, request, { token, password }))) {
        throw badRequest('This link has ended or was used; ask for a new one at /auth/forgot-password');
      }
      return success('The password is changed, and everybody is logged out; log in with the new one');
    },
  );
};

function success(text: string) {
  return { data: { success: text } };
}
