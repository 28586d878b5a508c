/** Texts that stand in several places of the shape of `policies.yaml`. */

/** No longer than a request line may be. */
export const route = (description: string) =>
  ({
    type: 'string',
    maxLength: 2000,
    description: `${description}, at most 2000 characters`,
  }) as const;

/** In the folder of the policy file, and nowhere else. */
export const FILE_BESIDE = '^[A-Za-z0-9_][A-Za-z0-9._-]{0,199}$';
