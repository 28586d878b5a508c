/**
 * Reads and caches surveys for their respondents. A short query tells whether a cached one is unchanged. The memory is
 * bounded in entries and in bytes; the oldest entry is dropped first.
 */
import type { Database } from '#api/db/schema.ts';
import {
  type AnsweredSurvey,
  findAnsweredSurvey,
  findSurveyVersion,
} from '#api/resources/surveys/answered.ts';

const ENTRIES_MAX = 1_000;
/** Maximum length of cached documents as stored. As objects they take several times as much. */
const LENGTH_MAX = 8_388_608;

interface SurveyReaderBounds {
  readonly entriesMax?: number;
  readonly lengthMax?: number;
}

interface SurveyReader {
  /** Returns the survey as it was last read, without a query. */
  last(id: string): AnsweredSurvey | null;
  /** Returns the survey as it is now; null if there is no such survey. */
  read(id: string): Promise<AnsweredSurvey | null>;
}

export function createSurveyReader(
  db: Database,
  { entriesMax = ENTRIES_MAX, lengthMax = LENGTH_MAX }: SurveyReaderBounds = {},
): SurveyReader {
  const entries = new Map<string, AnsweredSurvey>();
  let length = 0;

  const remove = (id: string): void => {
    length -= entries.get(id)?.documentLength ?? 0;
    entries.delete(id);
  };
  const add = (survey: AnsweredSurvey): void => {
    remove(survey.id);
    entries.set(survey.id, survey);
    length += survey.documentLength;
    for (const [oldest] of entries) {
      if (entries.size <= entriesMax && length <= lengthMax) break;
      remove(oldest);
    }
  };

  return {
    last: (id) => entries.get(id) ?? null,
    async read(id) {
      const known = entries.get(id);
      if (known !== undefined && (await findSurveyVersion(db, id)) === known.version) return known;
      const survey = await findAnsweredSurvey(db, id);
      if (survey === null) remove(id);
      else add(survey);
      return survey;
    },
  };
}
