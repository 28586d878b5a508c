/** The facts about a contact that decide which segments it belongs to. */
import type { Timestamp } from '#api/db/schema.ts';
import type { Millis } from '#shared/clock.ts';

export type Device = 'phone' | 'desktop';

export interface ContactProfile {
  readonly now: Millis;
  readonly userId: string | null;
  /** Attribute values by key. */
  readonly attributes: Readonly<Record<string, string>>;
  /** The device of this request. A contact may have several. */
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
  /**
   * Time of the last change. For a finished response this is the time when it was finished, unless the management API
   * changed it later.
   */
  readonly updatedAt: Timestamp;
}
