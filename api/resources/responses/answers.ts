/** Reads answers and times from bodies. Some clients put the language and the times among the answers. Pure. */
import { invalidFields } from '#api/errors.ts';
import { checker } from '#api/http/validation.ts';
import type { BareSurvey } from '#api/resources/surveys/store.ts';
import { isRecord, MapOf } from '#api/values/schemas.ts';
import { Answer, type Answers, type ResponseChange } from './schema.ts';

export type Times = Readonly<Record<string, number>>;

/** A day, in milliseconds. No respondent looks at a question for longer. */
const TTC_MS_MAX = 86_400_000;
const TOTAL = '_total';

const answersChecker = checker(MapOf(Answer));

export interface ReadAnswers {
  readonly data: Answers;
  readonly language: string | undefined;
  readonly ttc: Times | undefined;
}

/** Returns the change that a body of v1, or of a client, describes. */
export function changeIn(body: ResponseChange, survey: BareSurvey) {
  const { endingId, finished, variables } = body;
  return { ...answersIn(body, survey), endingId, finished, variables: variables ?? undefined };
}

/**
 * Takes `language` and `ttc` out of the answers, unless the survey has a question or a hidden field with that id.
 *
 * @throws ApiError invalid_fields for values that cannot be answers
 */
export function answersIn(
  body: {
    readonly data?: Readonly<Record<string, unknown>> | null;
    readonly language?: string | null;
    readonly ttc?: Times | null;
  },
  { content }: Pick<BareSurvey, 'content'>,
): ReadAnswers {
  const { language, ttc, ...rest } = body.data ?? {};
  const fieldIds = new Set([
    ...content.blocks.flatMap(({ elements }) => elements.map(({ id }) => id)),
    ...(content.hiddenFields.fieldIds ?? []),
  ]);
  const isLanguage = typeof language === 'string' && !fieldIds.has('language');
  const isTtc = isTimes(ttc) && !fieldIds.has('ttc');
  const data = {
    ...rest,
    ...(language === undefined || isLanguage ? {} : { language }),
    ...(ttc === undefined || isTtc ? {} : { ttc }),
  };
  if (!answersChecker.is(data)) throw invalidFields(answersChecker.issues(data, 'data'));
  return {
    data,
    language: body.language ?? (isLanguage ? language : undefined),
    ttc: body.ttc ?? (isTtc ? ttc : undefined),
  };
}

function isTimes(value: unknown): value is Times {
  return isRecord(value) && Object.values(value).every((item) => typeof item === 'number');
}

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
