/** Every abuse scenario, in the order of the report. */
import { CONNECTIONS } from './attacks/connections.ts';
import { HOARDING } from './attacks/hoarding.ts';
import { IDENTITIES } from './attacks/identities.ts';
import { REQUESTS } from './attacks/requests.ts';
import { UPLOADS } from './attacks/uploads.ts';
import type { AbuseScenario } from './scenario.ts';

export const SCENARIOS: readonly AbuseScenario[] = [
  ...REQUESTS,
  ...UPLOADS,
  ...HOARDING,
  ...CONNECTIONS,
  ...IDENTITIES,
];
