/** The shape of a survey: in the database, and in replies of the management API. */
import { type Static, Type } from 'typebox';
import { QUESTIONS_MAX, SURVEY_NAME_LENGTH_MAX } from '#api/values/content-limits.ts';
import { Localized, MapOf, Nullable, OneOf, rowFields, TextOrNull } from '#api/values/schemas.ts';
import { type Element, FieldId } from './question-types.ts';

const Color = Type.String({ pattern: '^#([0-9a-fA-F]{3,4}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})$' });
const Uri = Type.String({ pattern: '^[a-zA-Z][a-zA-Z0-9+.-]*://\\S+$', text: 'Give an absolute address' });

const optionalText = Type.Optional(Localized);

const WelcomeCard = Type.Object({
  enabled: Type.Boolean(),
  headline: optionalText,
  html: optionalText,
  subheader: optionalText,
  fileUrl: Type.Optional(Type.String()),
  videoUrl: Type.Optional(Type.String()),
  buttonLabel: optionalText,
  timeToFinish: Type.Boolean(),
  showResponseCount: Type.Boolean(),
});

/** One shape for both types of ending, so that every error names a field. `type` decides which fields count. */
const Ending = Type.Object({
  id: Type.String({ minLength: 1 }),
  type: OneOf(['endScreen', 'redirectToUrl']),
  headline: optionalText,
  subheader: optionalText,
  buttonLabel: optionalText,
  buttonLink: Type.Optional(Type.String()),
  imageUrl: Type.Optional(Type.String()),
  videoUrl: Type.Optional(Type.String()),
  url: Type.Optional(Type.String()),
  label: Type.Optional(Type.String()),
});

const Block = Type.Object({
  id: Type.String({ minLength: 1 }),
  name: Type.String(),
  /** Each is checked separately against the shape of its type, so that errors concern that type only. */
  elements: Type.Unsafe<Element[]>(Type.Array(MapOf(Type.Unknown()), { minItems: 1 })),
  logic: Type.Optional(Type.Array(MapOf(Type.Unknown()))),
  logicFallback: Type.Optional(Type.String()),
  buttonLabel: optionalText,
  backButtonLabel: optionalText,
});
export type Block = Static<typeof Block>;

const Variable = Type.Object({
  id: Type.String({ minLength: 1 }),
  name: Type.String({ pattern: '^[a-z0-9_]+$', text: 'Use lower-case letters, digits and underscores' }),
  type: OneOf(['number', 'text']),
  value: Type.Union([Type.String(), Type.Number()]),
});

const Overwrites = Type.Object({
  brandColor: Type.Optional(Nullable(Color)),
  highlightBorderColor: Type.Optional(Nullable(Color)),
  placement: Type.Optional(Nullable(OneOf(['bottomLeft', 'bottomRight', 'topLeft', 'topRight', 'center']))),
  clickOutsideClose: Type.Optional(Nullable(Type.Boolean())),
  overlay: Type.Optional(Nullable(OneOf(['none', 'light', 'dark']))),
});

const FollowUp = Type.Object({
  id: Type.String({ minLength: 1 }),
  name: Type.String(),
  trigger: Type.Object({
    type: OneOf(['response', 'endings']),
    properties: Type.Optional(Nullable(Type.Object({ endingIds: Type.Array(Type.String()) }))),
  }),
  action: Type.Object({
    type: OneOf(['send-email']),
    properties: Type.Object({
      to: Type.String(),
      from: Type.String(),
      replyTo: Type.Array(Type.String()),
      subject: Type.String(),
      body: Type.String(),
      attachResponseData: Type.Boolean(),
      includeVariables: Type.Optional(Type.Boolean()),
      includeHiddenFields: Type.Optional(Type.Boolean()),
    }),
  }),
});

const wholeFrom = (minimum: number) => Nullable(Type.Integer({ minimum, maximum: 1_000_000 }));
const SecondsOrNull = Nullable(Type.Number({ minimum: 0, maximum: 86_400 }));
const TimestampOrNull = Nullable(Type.String({ text: 'Give an ISO 8601 date' }));

const list = { maxItems: QUESTIONS_MAX };

/** Everything about a survey that a caller may write, except its references to other rows. */
export const SurveyContent = Type.Object({
  /** A cursor may contain the name, and it is part of an address. */
  name: Type.String({ minLength: 1, maxLength: SURVEY_NAME_LENGTH_MAX }),
  type: OneOf(['link', 'app', 'website']),
  status: OneOf(['draft', 'scheduled', 'inProgress', 'paused', 'completed']),
  createdBy: Nullable(Type.String()),
  slug: Nullable(Type.String({ pattern: '^[A-Za-z0-9-]{1,255}$', text: 'Use letters, digits and hyphens' })),
  blocks: Type.Array(Block, list),
  endings: Type.Array(Ending, list),
  welcomeCard: WelcomeCard,
  hiddenFields: Type.Object({
    enabled: Type.Boolean(),
    fieldIds: Type.Optional(Type.Array(FieldId, list)),
  }),
  variables: Type.Array(Variable, list),
  displayOption: OneOf(['displayOnce', 'displayMultiple', 'respondMultiple', 'displaySome']),
  displayLimit: wholeFrom(0),
  displayPercentage: Nullable(Type.Number({ minimum: 0.01, maximum: 100 })),
  recontactDays: wholeFrom(0),
  /** Delay in seconds. */
  delay: Type.Number({ minimum: 0, maximum: 86_400 }),
  autoClose: SecondsOrNull,
  autoComplete: wholeFrom(1),
  redirectUrl: Nullable(Uri),
  pin: Nullable(Type.String({ minLength: 4, maxLength: 4 })),
  publishOn: TimestampOrNull,
  closeOn: TimestampOrNull,
  isVerifyEmailEnabled: Type.Boolean(),
  isSingleResponsePerEmailEnabled: Type.Boolean(),
  isBackButtonHidden: Type.Boolean(),
  isAutoProgressingEnabled: Type.Boolean(),
  isCaptureIpEnabled: Type.Boolean(),
  singleUse: Nullable(
    Type.Object({
      enabled: Type.Boolean(),
      isEncrypted: Type.Boolean(),
      heading: Type.Optional(Nullable(Type.String())),
      subheading: Type.Optional(Nullable(Type.String())),
    }),
  ),
  showLanguageSwitch: Nullable(Type.Boolean()),
  /** The styling is stored unchanged, because the renderer knows many keys, and more with every release. */
  styling: Nullable(MapOf(Type.Unknown())),
  overwrites: Nullable(Overwrites),
  surveyClosedMessage: Nullable(
    Type.Object({
      enabled: Type.Optional(Type.Boolean()),
      heading: Type.Optional(Type.String()),
      subheading: Type.Optional(Type.String()),
    }),
  ),
  recaptcha: Nullable(
    Type.Object({ enabled: Type.Boolean(), threshold: Type.Number({ minimum: 0.1, maximum: 0.9 }) }),
  ),
  metadata: Type.Object({
    title: optionalText,
    description: optionalText,
    ogImage: Type.Optional(Type.String()),
  }),
  followUps: Type.Array(FollowUp, list),
  customHeadScripts: Nullable(Type.String()),
  customHeadScriptsMode: OneOf(['add', 'replace']),
});
export type SurveyContent = Static<typeof SurveyContent>;

export const surveyDefaults: Omit<SurveyContent, 'name' | 'blocks'> = {
  type: 'link',
  status: 'draft',
  createdBy: null,
  slug: null,
  endings: [],
  welcomeCard: { enabled: false, timeToFinish: true, showResponseCount: false },
  hiddenFields: { enabled: false },
  variables: [],
  displayOption: 'displayOnce',
  displayLimit: null,
  displayPercentage: null,
  recontactDays: null,
  delay: 0,
  autoClose: null,
  autoComplete: null,
  redirectUrl: null,
  pin: null,
  publishOn: null,
  closeOn: null,
  isVerifyEmailEnabled: false,
  isSingleResponsePerEmailEnabled: false,
  isBackButtonHidden: false,
  isAutoProgressingEnabled: false,
  isCaptureIpEnabled: false,
  singleUse: { enabled: false, isEncrypted: true },
  showLanguageSwitch: null,
  styling: null,
  overwrites: null,
  surveyClosedMessage: null,
  recaptcha: { enabled: false, threshold: 0.1 },
  metadata: {},
  followUps: [],
  customHeadScripts: null,
  customHeadScriptsMode: 'add',
};

/** The fields of a reply. Fields with a structure of their own were checked when they were written. */
export const SurveyReply = Type.Object({
  ...rowFields,
  ...Object.fromEntries(
    Object.keys(SurveyContent.properties)
      .filter((name) => name !== 'overwrites')
      .map((name) => [name, Type.Unknown()]),
  ),
  /** Always null. A client that is generated from the description leaves out a field that can only be null. */
  archivedAt: TextOrNull,
  questions: Type.Unknown(),
  languages: Type.Unknown(),
  triggers: Type.Unknown(),
  segment: Type.Unknown(),
  workspaceOverwrites: Type.Unknown(),
  projectOverwrites: Type.Unknown(),
  productOverwrites: Type.Unknown(),
});

const notTold = ['followUps', 'languages', 'workspaceOverwrites', 'projectOverwrites', 'productOverwrites'];

export const DeletedSurveyReply = Type.Object(
  Object.fromEntries(Object.entries(SurveyReply.properties).filter(([name]) => !notTold.includes(name))),
);
