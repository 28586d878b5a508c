/** Checks the size of responses. Pure. */

import { invalidFields } from '#api/errors.ts';
import {
  ANSWER_ITEMS_MAX,
  ANSWER_LENGTH_MAX,
  ANSWERS_MAX,
  RESPONSE_BYTES_MAX,
  RESPONSE_ID_LENGTH_MAX,
} from '#api/values/content-limits.ts';

/** A response as sent or as stored. Absent parts have no size. */
interface Sized {
  readonly data?: Readonly<Record<string, unknown>> | null | undefined;
  readonly variables?: Readonly<Record<string, unknown>> | null | undefined;
  readonly ttc?: Readonly<Record<string, unknown>> | null | undefined;
  readonly meta?: object | null | undefined;
}

/** Ids and codes. */
const ID_NAMES = ['displayId', 'singleUseId', 'endingId', 'language'] as const;

export type SentResponse = Sized & { readonly [Name in (typeof ID_NAMES)[number]]?: unknown };

/** Checks the maps of a body or of an update's result. @throws ApiError invalid_fields that names the part that is too large */
export function checkResponseSize({ data, variables, ttc, meta }: Sized): void {
  checkCount('data', data);
  checkCount('variables', variables);
  checkCount('ttc', ttc);
  for (const [id, answer] of Object.entries(data ?? {})) checkAnswer(`data.${shown(id)}`, answer);
  for (const [id, value] of Object.entries(variables ?? {})) checkText(`variables.${shown(id)}`, value);
  const bytes = Buffer.byteLength(JSON.stringify([data, variables, ttc, meta]));
  if (bytes > RESPONSE_BYTES_MAX) {
    throw invalidFields({ data: `A response must not have more than ${RESPONSE_BYTES_MAX} bytes in total` });
  }
}

/** Checks a body before the transaction. @throws ApiError invalid_fields that names the part that is too large */
export function checkSentResponse(body: SentResponse): void {
  checkResponseSize(body);
  for (const name of ID_NAMES) {
    const id = body[name];
    if (typeof id === 'string' && id.length > RESPONSE_ID_LENGTH_MAX) {
      throw invalidFields({ [name]: `must not have more than ${RESPONSE_ID_LENGTH_MAX} characters` });
    }
  }
}

function checkCount(path: string, map: object | null | undefined): void {
  if (Object.keys(map ?? {}).length > ANSWERS_MAX) {
    throw invalidFields({ [path]: `must not have more than ${ANSWERS_MAX} entries` });
  }
}

function checkAnswer(path: string, answer: unknown): void {
  if (typeof answer !== 'object' || answer === null) {
    checkText(path, answer);
    return;
  }
  const entries = Object.entries(answer);
  if (entries.length > ANSWER_ITEMS_MAX) {
    throw invalidFields({ [path]: `must not have more than ${ANSWER_ITEMS_MAX} entries` });
  }
  for (const [name, value] of entries) {
    checkText(path, name);
    checkText(path, value);
  }
}

function checkText(path: string, value: unknown): void {
  if (typeof value === 'string' && value.length > ANSWER_LENGTH_MAX) {
    throw invalidFields({ [path]: `must not have more than ${ANSWER_LENGTH_MAX} characters` });
  }
}

/** Shortens an id, because an error repeats only the beginning of a long one. */
function shown(id: string): string {
  return id.slice(0, 64).toWellFormed();
}
