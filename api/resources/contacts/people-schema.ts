import { Type } from 'typebox';
import { MapOf } from '#api/schemas.ts';

/** A contact as clients of before know it. */
export const PersonReply = Type.Object({
  id: Type.String(),
  userId: Type.String(),
  environmentId: Type.String(),
  workspaceId: Type.String(),
  attributes: MapOf(Type.String()),
  createdAt: Type.String(),
  updatedAt: Type.String(),
});
