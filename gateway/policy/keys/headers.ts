import { policyKey } from './key.ts';

export const headers = policyKey({
  schema: {
    enum: ['on', 'off', true, false],
    description: 'on (the default) or off: whether replies have limit headers for this policy',
  },
  default: 'on',
  more: 'If this policy denies a request, the 429 still names it',
  // Tools for YAML 1.1 write off as false.
  read: (headers) => headers !== 'off' && headers !== false,
  counted: ({ headers }) => headers,
});
