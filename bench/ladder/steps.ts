/** The steps of a request in the order of the ladder. Each rung of it is a server that takes the steps up to its own. */

export const TITLES = {
  bare: '`node:net` with a fixed reply',
  parser: 'our parser',
  connection: 'our connection and response',
  match: 'match',
  identify: 'bans, lists, identify',
  decide: 'spend and decide',
  text: 'text and headers',
  forward: 'our exchange with the application',
} as const;

export type Step = keyof typeof TITLES;

export const STEPS = Object.keys(TITLES) as readonly Step[];

/** The settings that a rung gets when it starts. */
export interface RungPlan {
  readonly step: Step;
  /** Whether the requests are admitted, and so forwarded. */
  readonly forwards: boolean;
}

export function stepsOf(step: Step): ReadonlySet<Step> {
  return new Set(STEPS.slice(0, STEPS.indexOf(step) + 1));
}
