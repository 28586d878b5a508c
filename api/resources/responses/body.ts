/** Reads the answers of a body. Some clients put the language and the times among the answers. Pure. */
import { invalidFields } from '#api/errors.ts';
import { checker } from '#api/http/validation.ts';
import type { BareSurvey } from '#api/resources/surveys/store.ts';
import { MapOf } from '#api/values/schemas.ts';
import { extractFromData, type Times } from './merge.ts';
import { Answer, type Answers, type ResponseChange } from './schema.ts';

const answersChecker = checker(MapOf(Answer));

export interface ReadAnswers {
  readonly data: Answers;
  readonly language: string | undefined;
  readonly ttc: Times | undefined;
}

/** Returns the ids that answers may have: questions and hidden fields of the survey. */
export function fieldIdsOf({ content }: BareSurvey): ReadonlySet<string> {
  return new Set([
    ...content.blocks.flatMap(({ elements }) => elements.map(({ id }) => id)),
    ...(content.hiddenFields.fieldIds ?? []),
  ]);
}

/** Returns the change that a body of v1, or of a client, describes. */
export function changeIn(body: ResponseChange, fieldIds: ReadonlySet<string>) {
  const { endingId, finished, variables } = body;
  return { ...answersIn(body, fieldIds), endingId, finished, variables: variables ?? undefined };
}

/**
 * @param fieldIds the ids of the survey, so that a question named `language` keeps its answer
 * @throws ApiError invalid_fields for values that cannot be answers
 */
export function answersIn(
  body: {
    readonly data?: Readonly<Record<string, unknown>> | null;
    readonly language?: string | null;
    readonly ttc?: Times | null;
  },
  fieldIds: ReadonlySet<string>,
): ReadAnswers {
  const extracted = extractFromData(body.data ?? {}, fieldIds);
  const { data } = extracted;
  if (!answersChecker.is(data)) throw invalidFields(answersChecker.issues(data, 'data'));
  return {
    data,
    language: body.language ?? extracted.language,
    ttc: body.ttc ?? extracted.ttc,
  };
}
