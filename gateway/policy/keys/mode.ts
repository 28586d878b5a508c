import { policyKey } from './key.ts';

/** The modes in which a policy denies nobody, with their explanations. */
const REMARKS = {
  shadow: 'shadow: it never denies',
  mark: 'mark: it never denies, and marks',
} as const;

/** Whether the explanation of a policy says that it denies nobody. */
export function saysNeverDenies(explanation: string): boolean {
  return Object.values(REMARKS).some((remark) => explanation.includes(remark));
}

export const mode = policyKey({
  schema: {
    enum: ['enforce', 'shadow', 'mark'],
    description:
      'enforce (the default), shadow to count and report without denying, or mark to tell the application instead of denying',
  },
  default: 'enforce',
  more: 'See [Trying a limit](policies.md#trying-a-limit-shadow-mode-and-rollout) and [Marking](#telling-the-application-mode-mark)',
  read: (mode) => mode,
  counted: ({ mode }) => mode,
  explain: ({ mode }) => (mode === 'enforce' ? null : REMARKS[mode]),
  /** Warns of keys that say how to refuse, because a policy that marks refuses nobody. */
  warn({ name, mode, ban, retryJitter, onStoreFailure }) {
    if (mode !== 'mark') return null;
    if (ban !== null) return [`${name} marks and denies nobody, so it never bans`, 'remove ban'];
    if (retryJitter > 0)
      return [`${name} marks and denies nobody, so it sends no Retry-After`, 'remove retryJitter'];
    if (onStoreFailure !== 'deny') return null;
    return [
      `${name} marks and denies nobody, so with onStoreFailure: deny it does nothing during an outage`,
      'write onStoreFailure: local, with which it goes on marking',
    ];
  },
});
