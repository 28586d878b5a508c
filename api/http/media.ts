/** What a route's schema says of replies that are no JSON: text and bytes, which pass the serialiser as they are, or nothing. */
import { type TSchema, Type } from 'typebox';

export const binary = Type.Unsafe<Buffer>({ type: 'string', format: 'binary' });

/** @param mediaType as the reply has it, without parameters */
export function media(mediaType: string, schema: TSchema, description: string) {
  return Type.Unsafe<unknown>({ description, content: { [mediaType]: { schema } } });
}

/** For people. */
export function htmlPage(description: string) {
  return media('text/html', Type.String(), description);
}

/** @param to what `location` names */
export function redirectTo(to: string) {
  return withoutBody(`To ${to}, in \`location\`.`);
}

export function withoutBody(description: string) {
  return Type.Unsafe<unknown>({ type: 'null', description });
}
