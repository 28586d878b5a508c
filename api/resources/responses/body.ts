/** Answers out of a body in which a language and times may hide. Pure. */
import { invalidFields } from '#api/errors.ts';
import { checker } from '#api/http/validation.ts';
import { MapOf } from '#api/schemas.ts';
import { extractFromData, type Times } from './merge.ts';
import { Answer, type Answers } from './schema.ts';

const answersChecker = checker(MapOf(Answer));

export interface ReadAnswers {
  readonly data: Answers;
  readonly language: string | undefined;
  readonly ttc: Times | undefined;
}

/**
 * @param fieldIds ids that are the survey's own, so that a question named `language` keeps its answer
 * @throws ApiError invalid_fields for what cannot be an answer
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
