/** The shape of the workspace state, in both of its formats. */
import { Type } from 'typebox';
import { Nullable, OneOf } from '#api/values/schemas.ts';

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

const common = {
  id: Type.String(),
  name: Type.String(),
  status: Type.String(),
  displayOption: OneOf(['displayOnce', 'displayMultiple', 'respondMultiple', 'displaySome']),
  displayLimit: Nullable(Type.Number()),
  displayPercentage: Nullable(Type.Number()),
  recontactDays: Nullable(Type.Number()),
  delay: Type.Number(),
  autoClose: Nullable(Type.Number()),
  hiddenFields: Type.Unknown(),
  variables: Type.Array(Type.Unknown()),
  questions: Type.Array(Type.Unknown()),
  endings: Type.Array(Type.Unknown()),
  welcomeCard: Type.Unknown(),
  segment: Type.Unknown(),
};

const OuterSurvey = Type.Object(
  {
    ...common,
    environmentId: Type.String(),
    createdAt: Type.String(),
    updatedAt: Type.String(),
    createdBy: Type.Null(),
    pin: Type.Null(),
    autoComplete: Nullable(Type.Number()),
    redirectUrl: Nullable(Type.String()),
    surveyClosedMessage: Type.Unknown(),
    isVerifyEmailEnabled: Type.Boolean(),
    singleUse: Type.Unknown(),
    triggers: Type.Array(Type.Object({ actionClass: Type.String() })),
  },
  { description: 'Localized texts are plain strings, those of the default language.' },
);

const InnerSurvey = Type.Object(
  {
    ...common,
    blocks: Type.Array(Type.Unknown()),
    triggers: Type.Array(Type.Object({ actionClass: Type.Object({ name: Type.String() }) })),
    interactionRefresh: Type.Optional(
      Type.Object(
        { onDisplay: Type.Boolean(), onResponse: Type.Boolean(), onFinished: Type.Boolean() },
        { description: 'When to ask for the state of the user again.' },
      ),
    ),
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
