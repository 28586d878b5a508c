import { PRIORITIES } from '#gateway/bounds/priority.ts';
import { policyKey } from './key.ts';

export const priority = policyKey({
  schema: {
    enum: PRIORITIES,
    description:
      'with protect: who waits behind the others and is refused first, low, normal (the default) or high',
  },
  without: '`normal`',
  more: 'See [Protecting the application](#protecting-the-application)',
  read: (priority) => priority ?? null,
  warn: ({ priority }, { protect }) =>
    priority === null || protect !== null
      ? null
      : ['priority has no effect without protect', 'write protect: on, or remove it', 'key'],
});
