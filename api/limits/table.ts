/**
 * The limits of the application by name; the limits of the gateway are in its policy file (docs/policies.md). A request over
 * its limit is answered 429. A window begins with the first request that it counts.
 */
import type { Seconds } from '#shared/clock.ts';

/** The identity that is counted. `caller` is the API key or the user of the session. */
type Identifier = 'ip' | 'sessionUser' | 'caller' | 'organization';

interface LimitRow {
  readonly limit: number;
  readonly windowSeconds: Seconds;
  readonly identifier: Identifier;
}

const MINUTE: Seconds = 60;
const HOUR: Seconds = 3600;

export const limitTable = {
  'auth.signup': { limit: 30, windowSeconds: HOUR, identifier: 'ip' },
  'auth.forgotPassword': { limit: 5, windowSeconds: HOUR, identifier: 'ip' },
  'auth.verifyEmail': { limit: 10, windowSeconds: HOUR, identifier: 'ip' },
  'api.v1': { limit: 100, windowSeconds: MINUTE, identifier: 'sessionUser' },
  'api.v2': { limit: 100, windowSeconds: MINUTE, identifier: 'caller' },
  'api.v3': { limit: 100, windowSeconds: MINUTE, identifier: 'caller' },
  'api.client': { limit: 100, windowSeconds: MINUTE, identifier: 'ip' },
  'storage.upload': { limit: 5, windowSeconds: MINUTE, identifier: 'sessionUser' },
  'storage.delete': { limit: 5, windowSeconds: MINUTE, identifier: 'sessionUser' },
  'actions.emailUpdate': { limit: 3, windowSeconds: HOUR, identifier: 'caller' },
  'actions.surveyFollowUp': { limit: 50, windowSeconds: HOUR, identifier: 'organization' },
  'actions.sendLinkSurveyEmail': { limit: 10, windowSeconds: HOUR, identifier: 'ip' },
  'actions.licenseRecheck': { limit: 5, windowSeconds: MINUTE, identifier: 'caller' },
} as const satisfies Readonly<Record<string, LimitRow>>;

export type LimitName = keyof typeof limitTable;
