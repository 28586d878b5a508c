/** Reads a query parameter with several ids: repeated, or separated by commas. */
import { type Static, Type } from 'typebox';
import { invalidFields } from '#api/errors.ts';
import { isId } from '#api/ids.ts';

export const IdList = Type.Union([Type.String(), Type.Array(Type.String())]);

/** @returns null if the parameter is absent @throws ApiError invalid_fields for wrong ids or too many */
export function idsFrom(
  value: Static<typeof IdList> | undefined,
  name: string,
  max: number,
): readonly string[] | null {
  if (value === undefined) return null;
  const ids = [value].flat().flatMap((text) => text.split(','));
  if (ids.length > max) throw invalidFields({ [name]: `must not have more than ${max} ids` });
  const wrong = ids.findIndex((id) => !isId(id));
  if (wrong !== -1)
    throw invalidFields({ [name]: `must be ids separated by commas; entry ${wrong + 1} is none` });
  return ids;
}
