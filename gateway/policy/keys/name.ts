/** The names of a policy and of its counter. */
import { policyKey } from './key.ts';

/** Names appear in header fields, metrics and store keys, so few characters are allowed. */
const text = (description: string) =>
  ({ type: 'string', pattern: '^[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?$', description }) as const;

export const name = policyKey({
  schema: text('a unique name: lower-case letters, digits, dots, dashes and underscores, at most 64'),
  more: 'Clients see it',
});

export const bucket = policyKey({
  schema: text('the name of a counter that several policies share'),
  without: "the policy's name",
  more: 'See [Shared buckets](#shared-buckets)',
  counted: ({ bucket }) => bucket,
  restarts: () => true,
  warn({ name, bucket }, { byBucket }) {
    if (bucket === name || (byBucket.get(bucket)?.length ?? 0) > 1) return null;
    return [
      `nothing shares the bucket ${bucket} with ${name}`,
      'give other policies the same bucket, or remove it',
    ];
  },
});
