/**
 * The shape of a survey: what a caller may write, what is stored, and what replies show. Clients know further members of
 * questions, blocks, endings and cards, and more with every release. They are stored and returned as they were sent.
 */
import { type Static, type TSchema, Type } from 'typebox';
import { ActionClassReply } from '#api/resources/action-classes/routes.ts';
import { CHOICES_MAX, QUESTIONS_MAX, SURVEY_NAME_LENGTH_MAX } from '#api/values/content-limits.ts';
import {
  Localized,
  MapOf,
  Nullable,
  OneOf,
  rowFields,
  scopeFields,
  TextOrNull,
} from '#api/values/schemas.ts';

const list = { maxItems: QUESTIONS_MAX };
const choices = { maxItems: CHOICES_MAX };
const Any = Type.Unknown();

function Maybe<S extends TSchema>(schema: S) {
  return Type.Optional(Nullable(schema));
}

/** A field of a survey that is null until somebody sets it. */
function Unset<S extends TSchema>(schema: S) {
  return Type.Union([schema, Type.Null()], { initially: null });
}

/** Surveys are shown on pages of other sites, where an address of another scheme could run code. */
const Address = Type.String({
  pattern: '^([hH][tT][tT][pP][sS]?://|#recall:|$)',
  text: 'Give an address that starts with http:// or https://',
});

/** Ids of questions and hidden fields. */
const FieldId = Type.String({
  pattern: '^[A-Za-z0-9_-]{1,255}$',
  text: 'Use 1 to 255 letters, digits, underscores and hyphens',
});

/** The types of questions, each with the fields without which clients cannot show it. */
export const questionTypes = {
  openText: [],
  multipleChoiceSingle: ['choices'],
  multipleChoiceMulti: ['choices'],
  nps: [],
  cta: [],
  rating: ['scale', 'range'],
  csat: ['scale', 'range'],
  ces: ['scale', 'range'],
  consent: ['label'],
  pictureSelection: ['choices'],
  cal: ['calUserName'],
  date: ['format'],
  fileUpload: ['allowMultipleFiles'],
  matrix: ['rows', 'columns'],
  address: ['addressLine1', 'addressLine2', 'city', 'state', 'zip', 'country'],
  contactInfo: ['firstName', 'lastName', 'email', 'phone', 'company'],
  ranking: ['choices'],
} as const satisfies Readonly<Record<string, readonly string[]>>;
type QuestionType = keyof typeof questionTypes;

/** One shape for all types of questions, so that every error names a field. */
export const Question = Type.Object({
  id: FieldId,
  type: Type.Unsafe<QuestionType>({ type: 'string', enum: Object.keys(questionTypes) }),
  headline: Localized,
  subheader: Maybe(Localized),
  required: Type.Optional(Type.Boolean()),
  placeholder: Maybe(Localized),
  inputType: Maybe(OneOf(['text', 'email', 'url', 'number', 'phone'])),
  charLimit: Maybe(
    Type.Object({ enabled: Maybe(Type.Boolean()), min: Maybe(Type.Number()), max: Maybe(Type.Number()) }),
  ),
  label: Maybe(Localized),
  choices: Maybe(
    Type.Array(Type.Object({ id: Type.String({ minLength: 1 }), label: Maybe(Localized) }), choices),
  ),
  shuffleOption: Maybe(
    OneOf(['none', 'all', 'exceptLast', 'reverseOrderOccasionally', 'reverseOrderExceptLast']),
  ),
  scale: Maybe(OneOf(['number', 'smiley', 'star'])),
  range: Maybe(Type.Unsafe<number>({ enum: [3, 4, 5, 6, 7, 10] })),
  format: Maybe(OneOf(['M-d-y', 'd-M-y', 'y-M-d'])),
  rows: Maybe(Type.Array(Any, choices)),
  columns: Maybe(Type.Array(Any, choices)),
  buttonUrl: Maybe(Address),
  allowMultipleFiles: Maybe(Type.Boolean()),
  maxSizeInMB: Maybe(Type.Number({ exclusiveMinimum: 0 })),
  allowedFileExtensions: Maybe(Type.Array(Type.String())),
});
export type Question = Static<typeof Question>;

const Block = Type.Object({
  id: Type.String({ minLength: 1 }),
  name: Type.String(),
  elements: Type.Array(Question, { ...list, minItems: 1 }),
  logic: Maybe(Type.Array(Any)),
  logicFallback: Maybe(Type.String()),
  buttonLabel: Maybe(Localized),
  backButtonLabel: Maybe(Localized),
});
export type Block = Static<typeof Block>;

const Ending = Type.Object({
  id: Type.String({ minLength: 1 }),
  type: OneOf(['endScreen', 'redirectToUrl']),
  headline: Maybe(Localized),
  subheader: Maybe(Localized),
  buttonLabel: Maybe(Localized),
  buttonLink: Maybe(Address),
  url: Maybe(Address),
});

const WelcomeCard = Type.Object(
  {
    enabled: Type.Boolean(),
    headline: Maybe(Localized),
    html: Maybe(Localized),
    subheader: Maybe(Localized),
    buttonLabel: Maybe(Localized),
    timeToFinish: Type.Optional(Type.Boolean()),
    showResponseCount: Type.Optional(Type.Boolean()),
  },
  { initially: { enabled: false, timeToFinish: true, showResponseCount: false } },
);

const Variable = Type.Object({
  id: Type.String({ minLength: 1 }),
  name: Type.String({ pattern: '^[a-z0-9_]+$', text: 'Use lower-case letters, digits and underscores' }),
  type: OneOf(['number', 'text']),
  value: Type.Union([Type.String(), Type.Number()]),
});

const FollowUp = Type.Object({
  id: Type.String({ minLength: 1 }),
  name: Type.String(),
  trigger: Type.Object({
    type: OneOf(['response', 'endings']),
    properties: Maybe(Type.Object({ endingIds: Type.Array(Type.String()) })),
  }),
  action: Type.Object({
    type: OneOf(['send-email']),
    properties: Type.Object({
      to: Type.String(),
      replyTo: Type.Array(Type.String()),
      subject: Type.String(),
      body: Type.String(),
      attachResponseData: Type.Boolean(),
    }),
  }),
});

const whole = (minimum: number) => Unset(Type.Integer({ minimum, maximum: 1_000_000 }));
const seconds = { minimum: 0, maximum: 86_400 };
const Flag = Type.Boolean({ initially: false });
const AnyMap = MapOf(Any);

/** Everything about a survey that a caller may write, except its triggers and its segment. */
export const SurveyContent = Type.Object({
  name: Type.String({ minLength: 1, maxLength: SURVEY_NAME_LENGTH_MAX }),
  type: OneOf(['link', 'app', 'website'], { initially: 'link' }),
  status: OneOf(['draft', 'scheduled', 'inProgress', 'paused', 'completed'], { initially: 'draft' }),
  createdBy: Unset(Type.String()),
  slug: Unset(Type.String({ pattern: '^[A-Za-z0-9-]{1,255}$', text: 'Use letters, digits and hyphens' })),
  blocks: Type.Array(Block, list),
  endings: Type.Array(Ending, { ...list, initially: [] }),
  welcomeCard: WelcomeCard,
  hiddenFields: Type.Object(
    { enabled: Type.Boolean(), fieldIds: Type.Optional(Type.Array(FieldId, list)) },
    { initially: { enabled: false } },
  ),
  variables: Type.Array(Variable, { ...list, initially: [] }),
  languages: Type.Array(
    Type.Object({ language: Type.String(), default: Type.Boolean(), enabled: Type.Boolean() }),
    { ...list, initially: [] },
  ),
  displayOption: OneOf(['displayOnce', 'displayMultiple', 'respondMultiple', 'displaySome'], {
    initially: 'displayOnce',
  }),
  displayLimit: whole(0),
  displayPercentage: Unset(Type.Number({ minimum: 0.01, maximum: 100 })),
  recontactDays: whole(0),
  /** In seconds, like `autoClose`. */
  delay: Type.Number({ ...seconds, initially: 0 }),
  autoClose: Unset(Type.Number(seconds)),
  autoComplete: whole(1),
  redirectUrl: Unset(Address),
  pin: Unset(Type.String({ minLength: 4, maxLength: 4 })),
  publishOn: Unset(Type.String({ text: 'Give an ISO 8601 date' })),
  closeOn: Unset(Type.String({ text: 'Give an ISO 8601 date' })),
  isVerifyEmailEnabled: Flag,
  isSingleResponsePerEmailEnabled: Flag,
  isBackButtonHidden: Flag,
  isAutoProgressingEnabled: Flag,
  isCaptureIpEnabled: Flag,
  singleUse: Type.Union(
    [Type.Object({ enabled: Type.Boolean(), isEncrypted: Type.Boolean() }), Type.Null()],
    { initially: { enabled: false, isEncrypted: true } },
  ),
  showLanguageSwitch: Unset(Type.Boolean()),
  styling: Unset(AnyMap),
  /** Older clients know it as `projectOverwrites` or `productOverwrites`. */
  workspaceOverwrites: Unset(AnyMap),
  surveyClosedMessage: Unset(AnyMap),
  recaptcha: Type.Union(
    [
      Type.Object({ enabled: Type.Boolean(), threshold: Type.Number({ minimum: 0.1, maximum: 0.9 }) }),
      Type.Null(),
    ],
    { initially: { enabled: false, threshold: 0.1 } },
  ),
  metadata: MapOf(Any, { initially: {} }),
  followUps: Type.Array(FollowUp, { ...list, initially: [] }),
  customHeadScripts: Unset(Type.String()),
  customHeadScriptsMode: OneOf(['add', 'replace'], { initially: 'add' }),
});
export type SurveyContent = Static<typeof SurveyContent>;

/**
 * The values of fields that a new survey does not name. The keyword is our own: generators of clients read `default` as a
 * field that is always there.
 */
export const surveyDefaults: Readonly<Record<string, unknown>> = Object.fromEntries(
  Object.entries(SurveyContent.properties).flatMap(([name, schema]) =>
    'initially' in schema ? [[name, schema.initially]] : [],
  ),
);

const { properties: content } = SurveyContent;
const overwrites = {
  projectOverwrites: content.workspaceOverwrites,
  productOverwrites: content.workspaceOverwrites,
};

/** Without defaults, because generated clients take a field that has one for required. */
const written = Object.fromEntries(
  Object.entries<TSchema & { readonly default?: unknown }>({ ...content, ...overwrites }).map(
    ([name, { default: _, ...schema }]) => [name, Type.Unsafe<unknown>(schema)],
  ),
);

/** The members that a body may have. content.ts reads them, and accepts plain strings as texts. */
export const SurveyChange = Type.Partial(
  Type.Object({
    ...written,
    questions: Type.Array(Type.Object({ ...Question.properties, required: Maybe(Type.Boolean()) })),
    triggers: Type.Array(Type.Object({ actionClass: Any })),
    segmentId: Nullable(Type.String()),
  }),
  { description: 'What is absent stays; `questions` replace `blocks`.' },
);
export const NewSurvey = Type.Object(
  { ...SurveyChange.properties, ...scopeFields, name: content.name },
  { description: 'Either of the two scope ids, and either `questions` or `blocks`.' },
);

/** The fields of a reply, which were checked when they were written. */
export const SurveyReply = Type.Object({
  ...rowFields,
  ...Object.fromEntries(Object.keys(content).map((name) => [name, Any])),
  /** Always null. A client that is generated from the description leaves out a field that can only be null. */
  archivedAt: TextOrNull,
  questions: Any,
  triggers: Any,
  segment: Any,
  projectOverwrites: Any,
  productOverwrites: Any,
});

/** The reply as the description shows it. */
export const shownSurvey = {
  ...SurveyReply.properties,
  ...content,
  ...overwrites,
  questions: Type.Array(Question),
  triggers: Type.Array(Type.Object({ actionClass: ActionClassReply })),
};
