/** All abuse scenarios, in the order of the report. */
import { BODIES } from './attacks/bodies.ts';
import { CONNECTIONS } from './attacks/connections.ts';
import { HOARDING } from './attacks/hoarding.ts';
import { IDENTITIES } from './attacks/identities.ts';
import { REQUESTS } from './attacks/requests.ts';
import type { AbuseScenario } from './scenario.ts';

export const SCENARIOS: readonly AbuseScenario[] = [
  ...REQUESTS,
  ...BODIES,
  ...HOARDING,
  ...CONNECTIONS,
  ...IDENTITIES,
];
