/** The fields of an action class. */
import { type Static, Type } from 'typebox';
import { MapOf, Nullable, OneOf, rowFields, scopeFields } from '#api/values/schemas.ts';

const TEXT_LENGTH_MAX = 2_048;
const Name = Type.String({ minLength: 1, maxLength: 255 });

/** SDKs read `noCodeConfig`, which is stored as sent. */
export const ActionClassBody = Type.Object({
  ...scopeFields,
  name: Name,
  description: Type.Optional(Nullable(Type.String({ maxLength: TEXT_LENGTH_MAX }))),
  type: OneOf(['code', 'noCode']),
  key: Type.Optional(Nullable(Name)),
  noCodeConfig: Type.Optional(Nullable(MapOf(Type.Unknown()))),
});
export type ActionClassBody = Static<typeof ActionClassBody>;

export const ActionClassReply = Type.Object({
  ...rowFields,
  name: Type.String(),
  description: Nullable(Type.String()),
  type: Type.String(),
  key: Nullable(Type.String()),
  noCodeConfig: Type.Unknown(),
});
