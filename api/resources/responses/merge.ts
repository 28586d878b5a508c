/** How times, and languages and times hidden in answers, are read. Pure. */
import { isRecord } from '#api/schemas.ts';

export type Times = Readonly<Record<string, number>>;

/** A day: nobody spends longer on a question with the page in front of them. */
const TTC_MS_MAX = 86_400_000;
const TOTAL = '_total';

/**
 * Lays new times over stored ones.
 *
 * @returns milliseconds by question id, each within 0 and a day; when finished and there are any, `_total` is their sum,
 *   which is never part of a later sum
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
 * Takes `language` and `ttc` out of the answers, where some clients put them, unless the survey has a question
 * of that id.
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
