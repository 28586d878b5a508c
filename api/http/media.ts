/** Response schemas for replies that are not JSON: text and bytes, which are sent as they are, or nothing. */
import { type TSchema, Type } from 'typebox';

export const binary = Type.Unsafe<Buffer>({ type: 'string', format: 'binary' });

/** @param mediaType the content type of the reply, without parameters */
export function media(mediaType: string, schema: TSchema, description: string) {
  return Type.Unsafe<unknown>({ description, content: { [mediaType]: { schema } } });
}

/** @param to the target of `location` */
export function redirectTo(to: string) {
  return withoutBody(`To ${to}, in \`location\`.`);
}

export function withoutBody(description: string) {
  return Type.Unsafe<unknown>({ type: 'null', description });
}
