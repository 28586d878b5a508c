/** Merges the times of questions, and finds languages and times among answers. Pure. */
import { isRecord } from '#api/values/schemas.ts';

export type Times = Readonly<Record<string, number>>;

/** A day, in milliseconds. No respondent looks at a question for longer. */
const TTC_MS_MAX = 86_400_000;
const TOTAL = '_total';

/**
 * Merges new times into stored ones.
 *
 * @returns milliseconds by question id, each at least 0 and at most a day. If the response is finished and has times,
 *   `_total` is their sum. An earlier `_total` is not added
 */
export function mergeTimes(stored: Times, given: Times, finished: boolean): Times {
  const merged = Object.entries({ ...stored, ...given })
    .filter(([name]) => name !== TOTAL)
    .map(([name, ms]) => [name, Math.min(Math.max(ms, 0), TTC_MS_MAX)] as const);
  if (merged.length === 0) return {};
  const total = merged.reduce((sum, [, ms]) => sum + ms, 0);
  return { ...Object.fromEntries(merged), ...(finished ? { [TOTAL]: total } : {}) };
}

interface Extracted {
  readonly data: Readonly<Record<string, unknown>>;
  readonly language?: string;
  readonly ttc?: Times;
}

/**
 * Takes `language` and `ttc` out of the answers, where some clients put them, unless the survey has a question with
 * that id.
 */
export function extractFromData(
  data: Readonly<Record<string, unknown>>,
  fieldIds: ReadonlySet<string>,
): Extracted {
  const { language, ttc, ...rest } = data;
  const isLanguage = typeof language === 'string' && !fieldIds.has('language');
  const isTtc = isTimes(ttc) && !fieldIds.has('ttc');
  return {
    data: {
      ...rest,
      ...(language !== undefined && !isLanguage ? { language } : {}),
      ...(ttc !== undefined && !isTtc ? { ttc } : {}),
    },
    ...(isLanguage ? { language } : {}),
    ...(isTtc ? { ttc } : {}),
  };
}

function isTimes(value: unknown): value is Times {
  return isRecord(value) && Object.values(value).every((item) => typeof item === 'number');
}
