import type { CommandContext } from './command.ts';

/** Returns the policy file that the gateway uses, the default of commands. */
export function policyFileOf({ GATEWAY_POLICIES }: CommandContext['env']): string {
  return GATEWAY_POLICIES || 'policies.yaml';
}
