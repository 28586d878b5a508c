/** Checks names of people. */
import { invalidFields } from '#api/errors.ts';

/** Letters, marks, digits, spaces and `' , . & ( ) -` of any script. */
const pattern = /^[\p{L}\p{M}\p{N} ',.&()-]{1,250}$/u;

/**
 * Checks names in mails to people who do not know the sender yet, so they must not contain links.
 *
 * @returns the name without spaces around it
 * @throws ApiError invalid_fields for the field `name`
 */
export function plainName(text: string): string {
  const name = text.trim();
  if (!pattern.test(name)) {
    throw invalidFields({ name: "must have 1 to 250 letters, digits, spaces and ' , . & ( ) -" });
  }
  return name;
}
