/** The fields of a workspace in replies, and those that can be changed. */
import { type Static, Type } from 'typebox';
import { MapOf, Nullable, OneOf } from '#api/values/schemas.ts';

const RECONTACT_DAYS_MAX = 3_650;

const name = Type.String({ minLength: 1, maxLength: 255 });
const color = Type.String({
  pattern: '^#([0-9a-fA-F]{3}|[0-9a-fA-F]{4}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})$',
  text: 'Give a colour such as #64748b',
});
/** Further keys are stored unchanged, because the SDK that shows surveys may know them. */
const Styling = Type.Object({
  allowStyleOverwrite: Type.Optional(Type.Boolean()),
  brandColor: Type.Optional(Type.Object({ light: color, dark: Type.Optional(Nullable(color)) })),
});

export const WorkspaceChange = Type.Object({
  name: Type.Optional(name),
  recontactDays: Type.Optional(Type.Integer({ minimum: 0, maximum: RECONTACT_DAYS_MAX })),
  clickOutsideClose: Type.Optional(Type.Boolean()),
  overlay: Type.Optional(OneOf(['none', 'light', 'dark'] as const)),
  placement: Type.Optional(OneOf(['bottomLeft', 'bottomRight', 'topLeft', 'topRight', 'center'] as const)),
  inAppSurveyBranding: Type.Optional(Type.Boolean()),
  /** Replaces single keys of the stored styling. */
  styling: Type.Optional(Styling),
});
export type WorkspaceChange = Static<typeof WorkspaceChange>;

export const NewWorkspace = Type.Object({ name });

export const WorkspaceReply = Type.Object({
  id: Type.String(),
  environmentId: Type.String(),
  organizationId: Type.String(),
  name: Type.String(),
  /** The caller's permission in it: `read`, `write` or `manage`. */
  permission: Type.String(),
  appSetupCompleted: Type.Boolean(),
  websiteSetupCompleted: Type.Boolean(),
  recontactDays: Type.Integer(),
  clickOutsideClose: Type.Boolean(),
  overlay: Type.String(),
  placement: Type.String(),
  inAppSurveyBranding: Type.Boolean(),
  styling: MapOf(Type.Unknown()),
  createdAt: Type.String(),
  updatedAt: Type.String(),
});
