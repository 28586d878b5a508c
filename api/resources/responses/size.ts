/** Checks the size of responses. Their answers may have any shape within it. Pure. */
import { invalidFields } from '#api/errors.ts';
import { RESPONSE_BYTES_MAX, RESPONSE_ID_LENGTH_MAX } from '#api/values/content-limits.ts';

/** A response as sent or as stored. Absent parts have no size. */
interface Sized {
  readonly data?: object | null | undefined;
  readonly variables?: object | null | undefined;
  readonly ttc?: object | null | undefined;
  readonly meta?: object | null | undefined;
}

/** Ids and codes. */
const ID_NAMES = ['displayId', 'singleUseId', 'endingId', 'language'] as const;

export type SentResponse = Sized & { readonly [Name in (typeof ID_NAMES)[number]]?: unknown };

/** Checks the maps of a body or of an update's result. @throws ApiError invalid_fields */
export function checkResponseSize({ data, variables, ttc, meta }: Sized): void {
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
