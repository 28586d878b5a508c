import { policyKey } from './key.ts';
import { DURATION } from './schema-parts.ts';

export const window = policyKey({
  schema: {
    type: 'string',
    pattern: `${DURATION.pattern}|^(?:day|week|month)$`,
    description: `${DURATION.description}, or day, week or month for calendar windows`,
  },
  without: 'required with `limit`',
  more: 'At most `366d`. See [Calendar windows](#calendar-windows)',
  counted: ({ windowMs }) => windowMs,
  restarts: () => true,
});
