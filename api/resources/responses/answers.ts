/** Reads answers and times from bodies. Some clients put the language and the times among the answers. Pure. */
import { badRequest, invalidFields } from '#api/errors.ts';
import { checker } from '#api/http/validation.ts';
import type { BareSurvey } from '#api/resources/surveys/store.ts';
import { isRecord, MapOf } from '#api/values/schemas.ts';
import { Answer, type Answers, type ResponseChange } from './schema.ts';

export type Times = Readonly<Record<string, number>>;

/** A day, in milliseconds. No respondent looks at a question for longer. */
const TTC_MS_MAX = 86_400_000;
const TOTAL = '_total';

const answersChecker = checker(MapOf(Answer));

/**
 * Returns the change that a body describes. Takes `language` and `ttc` out of the answers, unless the survey has a question
 * or a hidden field with that id.
 *
 * @throws ApiError invalid_fields for values that cannot be answers, bad_request for foreign files
 */
export function changeIn(body: ResponseChange, survey: BareSurvey, publicUrl: string) {
  const { content } = survey;
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
  refuseForeignFiles(survey, data, publicUrl);
  return {
    data: body.data ? data : undefined,
    language: body.language === undefined && isLanguage ? language : body.language,
    ttc: body.ttc ?? (isTtc ? ttc : undefined),
    endingId: body.endingId,
    finished: body.finished,
    variables: body.variables ?? undefined,
  };
}

function isTimes(value: unknown): value is Times {
  return isRecord(value) && Object.values(value).every((item) => typeof item === 'number');
}

/** @returns milliseconds by question id, each at most a day. A finished response with times has their sum as `_total` */
export function readTimes(given: Times, finished: boolean): Times {
  const times = Object.entries(given)
    .filter(([name]) => name !== TOTAL)
    .map(([name, ms]) => [name, Math.min(Math.max(ms, 0), TTC_MS_MAX)] as const);
  if (times.length === 0) return {};
  const total = times.reduce((sum, [, ms]) => sum + ms, 0);
  return { ...Object.fromEntries(times), ...(finished ? { [TOTAL]: total } : {}) };
}

/** Renderers send this for a file question that was skipped. */
const SKIPPED = 'skipped';

/** @throws ApiError bad_request if the answer to a file question names a file that is not in the workspace */
export function refuseForeignFiles(
  { content, workspaceId }: BareSurvey,
  data: Answers,
  publicUrl: string,
): void {
  const isOwn = (file: string): boolean => {
    const path = file.startsWith(`${publicUrl}/`) ? file.slice(publicUrl.length) : file;
    return /^\/storage\/(\w+)\/(private|public)\/./.exec(path)?.[1] === workspaceId && !isLeading(path);
  };
  for (const { id, type } of content.blocks.flatMap(({ elements }) => elements)) {
    const answer = type === 'fileUpload' && Object.hasOwn(data, id) ? data[id] : undefined;
    const files = typeof answer === 'string' ? [answer] : (answer ?? []);
    const areOwn =
      Array.isArray(files) && files.every((file) => file === '' || file === SKIPPED || isOwn(file));
    if (!areOwn) throw badRequest('Invalid file upload response');
  }
}

/** Whether the path leads elsewhere: some readers resolve its dots. */
function isLeading(path: string): boolean {
  return path.split('/').some((part) => /^(\.|%2e){1,2}$/i.test(part));
}
