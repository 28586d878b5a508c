import { secondsOf } from '#gateway/policy/duration.ts';
import { policyKey } from './key.ts';
import { DURATION } from './schema-parts.ts';

const SECONDS_MAX = 3600;

export const retryJitter = policyKey({
  schema: {
    ...DURATION,
    description:
      'a length of time from 1s to 1h: Retry-After of a 429 is longer by a random part of it, so that not all clients return at once',
  },
  without: 'none',
  more: 'See [Returning at different times](#returning-at-different-times-retryjitter)',
  read(written, { report }) {
    if (written === undefined) return 0;
    const seconds = secondsOf(written);
    if (seconds > SECONDS_MAX) report([], `${written} is too long`, 'write at most 1h');
    return seconds;
  },
  counted: ({ retryJitter }) => retryJitter,
  explain: ({ retryJitter }) =>
    retryJitter === 0 ? null : `Retry-After has 0 to ${retryJitter} s more, at random`,
});
