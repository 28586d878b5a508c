/** Checks the size of a survey before its shape is checked. Pure. */

import { invalidFields } from '#api/errors.ts';
import { CHOICES_MAX, QUESTIONS_MAX, SURVEY_BYTES_MAX } from '#api/values/content-limits.ts';
import { isRecord } from '#api/values/schemas.ts';

const LISTS_MAX = 1_000;
const topLists = ['questions', 'blocks', 'endings', 'variables', 'followUps', 'languages', 'triggers'];

/** @throws ApiError invalid_fields that names the part that is too large */
export function checkSurveySize(body: unknown): void {
  if (!isRecord(body)) return;
  for (const name of topLists)
    checkLength(body[name], name, name === 'questions' ? QUESTIONS_MAX : LISTS_MAX);
  if (isRecord(body.hiddenFields))
    checkLength(body.hiddenFields.fieldIds, 'hiddenFields.fieldIds', LISTS_MAX);
  const questions = questionsOf(body);
  if (questions.length > QUESTIONS_MAX) {
    throw invalidFields({ blocks: `must not have more than ${QUESTIONS_MAX} questions` });
  }
  for (const { path, question } of questions) {
    for (const list of ['choices', 'rows', 'columns']) {
      checkLength(question[list], `${path}.${list}`, CHOICES_MAX);
    }
  }
  if (Buffer.byteLength(JSON.stringify(body)) > SURVEY_BYTES_MAX) {
    throw invalidFields({ body: `A survey must not have more than ${SURVEY_BYTES_MAX} bytes` });
  }
}

interface Located {
  readonly path: string;
  readonly question: Readonly<Record<string, unknown>>;
}

function questionsOf(body: Readonly<Record<string, unknown>>): readonly Located[] {
  const blocks = Array.isArray(body.blocks) ? body.blocks : [];
  return [
    ...located(body.questions, 'questions'),
    ...blocks.flatMap((block: unknown, i) =>
      isRecord(block) ? located(block.elements, `blocks.${i}.elements`) : [],
    ),
  ];
}

function located(value: unknown, path: string): readonly Located[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((question: unknown, i) =>
    isRecord(question) ? [{ path: `${path}.${i}`, question }] : [],
  );
}

function checkLength(value: unknown, path: string, max: number): void {
  if (Array.isArray(value) && value.length > max) {
    throw invalidFields({ [path]: `must not have more than ${max} items` });
  }
}
