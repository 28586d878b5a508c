/** Plain charges and the others: each kind has a script, a way to ask and to read, and its steps in a Cluster. */
import type { StoreScript } from '#gateway/store/connection.ts';
import { type Answer, type PendingCheck, readReply, type ScriptCall, scriptCall } from './check.ts';
import { generalCall, readGeneralReply } from './general-check.ts';
import { SPEND_GENERAL } from './general-script.ts';
import { GENERAL_STEPS } from './general-steps.ts';
import { PLAIN_STEPS } from './plain-steps.ts';
import { SPEND } from './spend-script.ts';
import type { StepDialect } from './steps.ts';

/** How charges of one kind are asked for. */
export interface CheckKind {
  readonly isPlain: boolean;
  readonly script: StoreScript;
  callOf(checks: readonly PendingCheck[]): ScriptCall;
  read(reply: unknown, checks: readonly PendingCheck[]): { readonly answers: readonly Answer[] };
  readonly steps: StepDialect;
}

export const PLAIN: CheckKind = {
  isPlain: true,
  script: SPEND,
  callOf: scriptCall,
  read: readReply,
  steps: PLAIN_STEPS,
};
export const GENERAL: CheckKind = {
  isPlain: false,
  script: SPEND_GENERAL,
  callOf: generalCall,
  read: readGeneralReply,
  steps: GENERAL_STEPS,
};
