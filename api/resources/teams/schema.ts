/** The shapes of a team, with and without its members and workspaces. */
import { Type } from 'typebox';
import { OneOf } from '#api/schemas.ts';

const shape = {
  id: Type.String(),
  organizationId: Type.String(),
  name: Type.String(),
  createdAt: Type.String(),
  updatedAt: Type.String(),
};
export const TeamReply = Type.Object(shape);

export const TeamRoleName = OneOf(['admin', 'contributor'] as const);
export const TeamPermissionName = OneOf(['read', 'readWrite', 'manage'] as const);

export const TeamDetailsReply = Type.Object({
  ...shape,
  members: Type.Array(
    Type.Object({
      userId: Type.String(),
      name: Type.String(),
      email: Type.String(),
      role: TeamRoleName,
    }),
  ),
  workspaces: Type.Array(
    Type.Object({ workspaceId: Type.String(), name: Type.String(), permission: TeamPermissionName }),
  ),
});

export const NewTeam = Type.Object({ name: Type.String({ minLength: 1, maxLength: 255 }) });
