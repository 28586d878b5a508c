/** The length of a request line is limited anyway. */
export const route = (description: string) =>
  ({
    type: 'string',
    maxLength: 2000,
    description: `${description}, at most 2000 characters`,
  }) as const;

/** A plain file name: only files in the folder of the policy file can be named. */
export const REFERENCED_FILE = '^[A-Za-z0-9_][A-Za-z0-9._-]{0,199}$';
