/** What is known about a contact when it is asked which segments it is in. */
import type { Timestamp } from '#api/db/schema.ts';
import type { Attributes } from '#api/resources/contacts/store.ts';
import type { Millis } from '#shared/clock.ts';

export type Device = 'phone' | 'desktop';

export interface ContactProfile {
  readonly now: Millis;
  readonly userId: string | null;
  readonly attributes: Attributes;
  /** That of the request; a contact may have several. */
  readonly device: Device;
  readonly displays: readonly SeenSurvey[];
  readonly responses: readonly AnsweredSurvey[];
}

export interface SeenSurvey {
  readonly surveyId: string;
  readonly createdAt: Timestamp;
}

export interface AnsweredSurvey extends SeenSurvey {
  readonly finished: boolean;
  /** Of a finished response the time it was finished, unless somebody changed it through the management API. */
  readonly updatedAt: Timestamp;
}
