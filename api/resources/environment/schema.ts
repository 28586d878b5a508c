/** The shape of the workspace state, in both of its formats. state.ts lists the fields of a survey in each. */
import { Type } from 'typebox';
import { ActionClassReply } from '#api/resources/action-classes/routes.ts';
import { shownSettings } from '#api/resources/workspaces/store.ts';
import { picked } from '#api/values/schemas.ts';

const names = ['id', 'type', 'name', 'key', 'noCodeConfig'] as const;
const ActionClass = Type.Object(picked(ActionClassReply.properties, names));

const Settings = Type.Object({ id: Type.String(), ...shownSettings });

const Survey = Type.Object({ id: Type.String() });

export const State = Type.Object({
  data: Type.Object({
    actionClasses: Type.Array(ActionClass),
    project: Settings,
    surveys: Type.Array(Survey, {
      description: 'Localized texts are plain strings, those of the default language.',
    }),
    data: Type.Object({
      actionClasses: Type.Array(ActionClass),
      surveys: Type.Array(Survey, {
        description: 'What SDKs read: localized texts are maps from language codes to texts.',
      }),
      workspace: Settings,
      project: Settings,
      settings: Settings,
      recaptchaSiteKey: Type.Optional(Type.String()),
    }),
    expiresAt: Type.String(),
  }),
});
