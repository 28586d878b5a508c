import { policyKey } from './key.ts';

export const count = policyKey({
  schema: {
    enum: ['request', 'failure', 'success'],
    description:
      'request (the default), or failure or success to count only requests that the application answers with 4xx or 5xx, or with less',
  },
  default: 'request',
  more: 'See [Counting failures or successes](#counting-failures-or-successes)',
  read: (count, { isInFlight }) => (isInFlight ? 'request' : count),
  counted: ({ count }) => count,
  explain: ({ count }) => (count === 'request' ? null : `only each ${count} counts`),
});
