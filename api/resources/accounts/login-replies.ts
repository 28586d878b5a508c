/** Replies of routes that log people in or out, for the description: data for programs, a redirect for pages. */
import { Type } from 'typebox';
import { redirectTo } from '#api/http/media.ts';

const Url = Type.Object({ url: Type.String() });

export const sessionReplies = {
  200: {
    ...Url,
    description: 'With `json: true` in the body: where to go next; the session comes as a cookie.',
  },
  302: redirectTo('a page, without `json: true`'),
};

/** Answers a page with a page, so that the person can try the same link again. */
export const verificationReplies = {
  ...sessionReplies,
  401: {
    ...Url,
    description:
      'With `json: true`: refused; the address says why. The link may need `password`, the one of the sign-up, or `newPassword`.',
  },
};

export const loginReplies = {
  ...sessionReplies,
  401: { ...Url, description: 'With `json: true`: refused; the address says why.' },
};
