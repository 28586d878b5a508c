/** Bodies that clients send about displays. */
import { Type } from 'typebox';
import { Nullable } from '#api/schemas.ts';

export const UserId = Type.Optional(
  Nullable(Type.String({ maxLength: 255, text: 'User ID cannot exceed 255 characters' })),
);
