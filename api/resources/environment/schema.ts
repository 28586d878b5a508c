/** The shape of the workspace state, in both of its formats. */
import { Type } from 'typebox';
import { SurveyContent } from '#api/resources/surveys/schema.ts';
import { Nullable, OneOf, picked } from '#api/values/schemas.ts';

const ActionClass = Type.Object({
  id: Type.String(),
  type: OneOf(['code', 'noCode', 'automatic']),
  name: Type.String(),
  key: Nullable(Type.String()),
  noCodeConfig: Type.Unknown(),
});

const Settings = Type.Object({
  id: Type.String(),
  recontactDays: Type.Number(),
  clickOutsideClose: Type.Boolean(),
  overlay: OneOf(['none', 'light', 'dark']),
  placement: OneOf(['bottomLeft', 'bottomRight', 'topLeft', 'topRight', 'center']),
  inAppSurveyBranding: Type.Boolean(),
  styling: Type.Unknown(),
});

const { properties } = SurveyContent;

/** The parts were checked when they were written. */
const common = {
  ...picked(properties, ['displayOption', 'displayLimit', 'displayPercentage', 'recontactDays', 'delay']),
  ...picked(properties, ['autoClose', 'hiddenFields', 'variables']),
  id: Type.String(),
  name: Type.String(),
  status: Type.String(),
  questions: Type.Array(Type.Unknown()),
  endings: Type.Array(Type.Unknown()),
  welcomeCard: Type.Unknown(),
  segment: Type.Unknown(),
};

const OuterSurvey = Type.Object(
  {
    ...common,
    ...picked(properties, ['autoComplete', 'redirectUrl', 'surveyClosedMessage', 'isVerifyEmailEnabled']),
    environmentId: Type.String(),
    createdAt: Type.String(),
    updatedAt: Type.String(),
    createdBy: Type.Null(),
    pin: Type.Null(),
    singleUse: properties.singleUse,
    triggers: Type.Array(Type.Object({ actionClass: Type.String() })),
  },
  { description: 'Localized texts are plain strings, those of the default language.' },
);

const InnerSurvey = Type.Object(
  {
    ...common,
    blocks: Type.Array(Type.Unknown()),
    triggers: Type.Array(Type.Object({ actionClass: Type.Object({ name: Type.String() }) })),
  },
  { description: 'What SDKs read: localized texts are maps from language codes to texts.' },
);

export const State = Type.Object({
  data: Type.Object({
    actionClasses: Type.Array(ActionClass),
    project: Settings,
    surveys: Type.Array(OuterSurvey),
    data: Type.Object({
      actionClasses: Type.Array(ActionClass),
      surveys: Type.Array(InnerSurvey),
      workspace: Settings,
      project: Settings,
      settings: Settings,
      recaptchaSiteKey: Type.Optional(Type.String()),
    }),
    expiresAt: Type.String(),
  }),
});
