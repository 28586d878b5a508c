/**
 * The page for the second factor of the account, and the route of its forms. It follows the rules of the routes for
 * programs, and answers every refusal with the page as it is then.
 *
 * Callers: sessions, with the password of the account. Forms must be ours. The limit is that of the management API for
 * sessions, and five passwords and codes a minute for each account.
 */
import { timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { setSessionCookie } from '#api/auth/cookies.ts';
import { backupCodesLeft, totpSecret } from '#api/auth/second-factor.ts';
import { base32 } from '#api/auth/totp.ts';
import type { Routes } from '#api/context.ts';
import { ApiError, badRequest, forbidden, NamedError, RetryLater } from '#api/errors.ts';
import { htmlPage, redirectTo } from '#api/http/media.ts';
import { sendPage } from '#api/http/page.ts';
import { alert, ask, notice } from '#api/http/page-form.ts';
import { takeGuess } from '#api/resources/accounts/admission.ts';
import { acceptForms, fieldOf, formFields } from '#api/resources/accounts/form.ts';
import { texts } from '#api/resources/accounts/login.ts';
import { isFormOurs, protect } from '#api/resources/accounts/protection.ts';
import { findUser } from '#api/resources/accounts/store.ts';
import { beginSetUp, confirmCode, renewCodes, turnOff, uriOf } from '#api/resources/sign-in/two-factor.ts';
import { escapeHtml } from '#shared/page.ts';
import {
  type Account,
  factorParts,
  isOn,
  isStep,
  type Mistake,
  renewedParts,
  SECOND_FACTOR_PATH,
  type SetUp,
} from './second-factor-view.ts';
import { visitorOf } from './visitor.ts';

const changed = redirectTo('the page as it is now');
const refused = htmlPage('The page, with the mistake.');
const page = {
  schema: { response: { 200: htmlPage('A page.'), 302: redirectTo('the login page, which leads back') } },
  config: { refuses: ['too_many_requests'] },
} as const;
const change = {
  schema: {
    response: {
      200: htmlPage('A page with backup codes, and with the key of a new set-up.'),
      303: changed,
      400: refused,
      403: refused,
      429: refused,
    },
  },
  config: {
    refuses: ['bad_request', 'forbidden', 'too_many_requests'],
    reads: formFields('step', 'userId', 'password', 'code', 'key', 'backupCodes'),
    refusedAs: { action: 'updated', targetType: 'user', param: null },
  },
} as const;

interface Shown {
  readonly status?: number;
  /** HTML. */
  readonly message?: string;
  readonly mistake?: Mistake | null;
  readonly setUp?: SetUp | null;
}

export const secondFactorRoutes: Routes = async (app, { context }) => {
  const { db, signer, config } = context;
  const { basePath } = app;
  const path = `${basePath}${SECOND_FACTOR_PATH}`;
  acceptForms(app);

  app.get(SECOND_FACTOR_PATH, page, async (request, reply) => {
    const news = fieldOf(request.query, 'notice');
    const visitor = await visitorOf(context, request);
    const account = visitor === null ? null : await accountOf(visitor.userId);
    if (account === null) {
      const query = new URLSearchParams({
        ...(news === 'ended' ? { error: texts.sessionRequired } : {}),
        callbackUrl: path,
      });
      return reply.redirect(`${basePath}/auth/login?${query}`);
    }
    const text = news === (isOn(account) ? 'on' : 'off') ? notices[news] : null;
    return send(request, reply, account, text === null ? {} : { message: notice(text) });
  });

  app.post(SECOND_FACTOR_PATH, change, async (request, reply) => {
    const visitor = await visitorOf(context, request);
    const account = visitor === null ? null : await accountOf(visitor.userId);
    if (account === null) return reply.redirect(`${path}?notice=ended`, 303);
    try {
      return await take(request, reply, account);
    } catch (error) {
      if (!(error instanceof ApiError) || error.statusCode >= 500) throw error;
      const now = isEnded(error) ? null : await accountOf(account.user.id);
      if (now === null) return reply.redirect(`${path}?notice=ended`, 303);
      return refuse(request, reply, now, error);
    }
  });

  /** Executes the step that a form asks for. @throws ApiError if it is refused */
  async function take(request: FastifyRequest, reply: FastifyReply, account: Account) {
    const { body } = request;
    if (!isFormOurs(request, signer)) throw forbidden('The form was too old. Please send it again.');
    const problem = outdated(body, account);
    if (problem !== null) throw badRequest(problem);
    const step = fieldOf(body, 'step');
    if (!isStep(step)) throw badRequest('The form was not complete. Please send it again.');
    const { id: userId } = account.user;
    await takeGuess(context, userId);
    const proof = { userId, password: fieldOf(body, 'password') };
    switch (step) {
      case 'begin': {
        const { secret, user, backupCodes } = await beginSetUp(context, proof);
        const begun = { ...account, user, secret };
        const message = ask('Three steps more. A login does not need a code before the last one.');
        return send(request, reply, begun, { message, setUp: setUpOf(begun, backupCodes) });
      }
      case 'confirm': {
        const factor = { kind: 'totp', code: fieldOf(body, 'code') } as const;
        const token = await confirmCode(context, request, account.user, factor);
        if (token !== null) {
          const { publicUrl, sessionMaxAgeSeconds: maxAge } = config;
          setSessionCookie(reply, token, { maxAge, publicUrl, style: 'nextAuth' });
        }
        return reply.redirect(`${path}?notice=on`, 303);
      }
      case 'renew': {
        const backupCodes = await renewCodes(context, request, proof);
        return sendPage(reply, 200, 'Your new backup codes', renewedParts(backupCodes, basePath));
      }
      case 'disable':
        await turnOff(context, request, proof);
        return reply.redirect(`${path}?notice=off`, 303);
    }
  }

  /** @param account as it is now, which may be why the form was refused */
  function refuse(
    request: FastifyRequest,
    reply: FastifyReply,
    account: Account,
    error: ApiError,
  ): FastifyReply {
    const { body } = request;
    // A form that is not ours may say anything about the account.
    const problem = error.code === 'forbidden' ? null : outdated(body, account);
    const mistake = problem === null ? mistakeOf(error, fieldOf(body, 'step')) : null;
    const text = problem ?? mistake?.title ?? textOf(error);
    if (error instanceof RetryLater) reply.header('retry-after', error.retryAfterSeconds);
    return send(request, reply, account, {
      status: error.code === 'not_authenticated' ? 400 : error.statusCode,
      message: alert(escapeHtml(text)),
      mistake,
      setUp: openSetUp(body, account),
    });
  }

  /** Reads the set-up from a form. The database has backup codes only as hashes, so the form sends them back. */
  function openSetUp(body: unknown, account: Account): SetUp | null {
    const isOpen = !isOn(account) && isKeyOf(account, fieldOf(body, 'key'));
    if (!isOpen) return null;
    return setUpOf(account, fieldOf(body, 'backupCodes').split(' '));
  }

  function setUpOf(
    { user, secret }: { readonly user: Account['user']; readonly secret: Uint8Array },
    backupCodes: readonly string[],
  ): SetUp {
    return { key: base32(secret), uri: uriOf(context, { secret, user }), backupCodes };
  }

  /** @returns null when the user was deleted */
  async function accountOf(userId: string): Promise<Account | null> {
    const user = await findUser(db, userId);
    if (user === null) return null;
    const secret = await totpSecret(db, signer, userId);
    return { user, secret, codesLeft: await backupCodesLeft(db, userId) };
  }

  function send(
    request: FastifyRequest,
    reply: FastifyReply,
    account: Account,
    { status = 200, message = '', mistake = null, setUp = null }: Shown,
  ): FastifyReply {
    const protection = protect(context, request, reply);
    return sendPage(reply, status, 'Second factor', [
      message,
      ...factorParts(account, setUp, { protection, basePath, mistake }),
    ]);
  }
};

const notices = {
  on: 'The second factor is on. All other sessions of your account have ended.',
  off: 'The second factor is off.',
} as const;

/** @returns why the form does not fit the account any more: another window, or another person, was faster */
function outdated(body: unknown, account: Account): string | null {
  const step = fieldOf(body, 'step');
  const key = fieldOf(body, 'key');
  const { user, secret } = account;
  if (fieldOf(body, 'userId') !== user.id) {
    return `Meanwhile ${user.email} logged in with this browser. Nothing was changed.`;
  }
  switch (step) {
    case 'begin':
    case 'confirm':
      if (isOn(account)) return 'Meanwhile the second factor was turned on, in another window perhaps.';
      if (step === 'begin' || (secret !== null && (key === '' || isKeyOf(account, key)))) return null;
      return 'This key does not serve any more: the set-up was begun again, or ended, in another window perhaps.';
    case 'renew':
    case 'disable':
      return isOn(account) ? null : 'Meanwhile the second factor was turned off, in another window perhaps.';
    default:
      return null;
  }
}

/** Compares in constant time. */
function isKeyOf(account: Account, key: string): account is Account & { readonly secret: Uint8Array } {
  if (account.secret === null) return false;
  const [own, given] = [Buffer.from(base32(account.secret)), Buffer.from(key)];
  return own.length === given.length && timingSafeEqual(own, given);
}

/** Whether the account changed while the form was checked, which ends its sessions. */
function isEnded(error: ApiError): boolean {
  return error instanceof NamedError && error.shownCode === 'UNAUTHORIZED';
}

function mistakeOf(error: ApiError, step: string): Mistake | null {
  if (!(error instanceof NamedError) || !isStep(step)) return null;
  switch (error.shownCode) {
    case 'INVALID_PASSWORD':
      return { step, title: 'The password is wrong.', text: 'This is not the password of your account.' };
    case 'INVALID_CODE':
      return {
        step,
        title: 'The code is wrong, or too old.',
        text: 'Enter the code that the app shows now. If none works, check the clock of the device.',
      };
    default:
      return null;
  }
}

function textOf(error: ApiError): string {
  if (!(error instanceof RetryLater)) return error.message;
  const seconds = error.retryAfterSeconds;
  return `Too many attempts for now. Wait ${seconds === 1 ? 'a second' : `${seconds} seconds`}, and send it again.`;
}
