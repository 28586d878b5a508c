/** The types of questions and their fields. Other fields are stored as they were sent. */
import { type Static, type TObject, type TProperties, Type } from 'typebox';
import { CHOICES_MAX } from '#api/values/content-limits.ts';
import { Localized, MapOf, OneOf } from '#api/values/schemas.ts';

/** Ids of questions, elements and hidden fields. */
export const FieldId = Type.String({
  pattern: '^[A-Za-z0-9_-]{1,255}$',
  text: 'Use 1 to 255 letters, digits, underscores and hyphens',
});

/** Ids with a special meaning in links, logic or JavaScript, in lower case. */
export const reservedIds: ReadonlySet<string> = new Set(
  [
    'userId',
    'source',
    'suid',
    'end',
    'start',
    'welcomeCard',
    'hidden',
    'verifiedEmail',
    'multiLanguage',
    'embed',
    'verify',
    // A body with the first as a key is refused (request-body.ts), and renderers may use ids as keys of plain objects.
    '__proto__',
    'constructor',
    'prototype',
  ].map((id) => id.toLowerCase()),
);

const common = {
  id: FieldId,
  headline: Localized,
  subheader: Type.Optional(Localized),
  required: Type.Boolean(),
  imageUrl: Type.Optional(Type.String()),
  videoUrl: Type.Optional(Type.String()),
  isDraft: Type.Optional(Type.Boolean()),
  /** Rules for answers, which clients check. */
  validation: Type.Optional(MapOf(Type.Unknown())),
};

const Choice = Type.Object({ id: Type.String({ minLength: 1 }), label: Localized });
const choices = { minItems: 2, maxItems: CHOICES_MAX };
const shuffleOption = Type.Optional(
  OneOf(['none', 'all', 'exceptLast', 'reverseOrderOccasionally', 'reverseOrderExceptLast']),
);
const scale = OneOf(['number', 'smiley', 'star']);

function rangeOf(...values: readonly number[]) {
  return Type.Unsafe<number>({ enum: values });
}

const scaleLabels = {
  lowerLabel: Type.Optional(Localized),
  upperLabel: Type.Optional(Localized),
  isColorCodingEnabled: Type.Optional(Type.Boolean()),
};

const multipleChoice = {
  choices: Type.Array(Choice, choices),
  shuffleOption,
  otherOptionPlaceholder: Type.Optional(Localized),
  displayType: Type.Optional(OneOf(['list', 'dropdown'])),
};

const FormPart = Type.Object({
  show: Type.Boolean(),
  required: Type.Boolean(),
  placeholder: Type.Optional(Localized),
});

const charLimit = Type.Object({
  enabled: Type.Optional(Type.Boolean()),
  min: Type.Optional(Type.Number({ minimum: 0 })),
  max: Type.Optional(Type.Number({ minimum: 0 })),
});

/** Matching takes time linear in the address, because nothing is repeated after the extension. */
const imagePattern = '\\.([pP][nN][gG]|[jJ][pP][eE]?[gG]|[wW][eE][bB][pP]|[hH][eE][iI][cC])(\\?|$)';

function question<Name extends string, Fields extends TProperties>(type: Name, fields: Fields) {
  return Type.Object({ ...common, type: Type.Literal(type), ...fields });
}

/** The shapes by type. */
export const questionShapes = {
  openText: question('openText', {
    placeholder: Type.Optional(Localized),
    longAnswer: Type.Optional(Type.Boolean()),
    inputType: OneOf(['text', 'email', 'url', 'number', 'phone']),
    charLimit,
    insightsEnabled: Type.Optional(Type.Boolean()),
  }),
  multipleChoiceSingle: question('multipleChoiceSingle', multipleChoice),
  multipleChoiceMulti: question('multipleChoiceMulti', multipleChoice),
  nps: question('nps', scaleLabels),
  cta: question('cta', {
    buttonExternal: Type.Optional(Type.Boolean()),
    buttonUrl: Type.Optional(Type.String()),
    dismissButtonLabel: Type.Optional(Localized),
    ctaButtonLabel: Type.Optional(Localized),
    html: Type.Optional(Localized),
  }),
  rating: question('rating', { ...scaleLabels, scale, range: rangeOf(3, 4, 5, 6, 7, 10) }),
  csat: question('csat', { ...scaleLabels, scale, range: rangeOf(5) }),
  ces: question('ces', { ...scaleLabels, scale, range: rangeOf(5, 7) }),
  consent: question('consent', { label: Localized, html: Type.Optional(Localized) }),
  pictureSelection: question('pictureSelection', {
    allowMulti: Type.Boolean(),
    choices: Type.Array(
      Type.Object({
        id: Type.String({ minLength: 1 }),
        imageUrl: Type.String({
          pattern: imagePattern,
          text: 'Give the address of a png, jpeg, webp or heic',
        }),
      }),
      choices,
    ),
  }),
  cal: question('cal', { calUserName: Type.String({ minLength: 1 }), calHost: Type.Optional(Type.String()) }),
  date: question('date', { html: Type.Optional(Localized), format: OneOf(['M-d-y', 'd-M-y', 'y-M-d']) }),
  fileUpload: question('fileUpload', {
    allowMultipleFiles: Type.Boolean(),
    maxSizeInMB: Type.Optional(Type.Number({ exclusiveMinimum: 0 })),
    allowedFileExtensions: Type.Optional(Type.Array(Type.String())),
  }),
  matrix: question('matrix', {
    rows: Type.Array(Choice, { ...choices, minItems: 1 }),
    columns: Type.Array(Choice, { ...choices, minItems: 1 }),
    shuffleOption,
  }),
  address: question('address', {
    addressLine1: FormPart,
    addressLine2: FormPart,
    city: FormPart,
    state: FormPart,
    zip: FormPart,
    country: FormPart,
  }),
  contactInfo: question('contactInfo', {
    firstName: FormPart,
    lastName: FormPart,
    email: FormPart,
    phone: FormPart,
    company: FormPart,
  }),
  ranking: question('ranking', {
    choices: Type.Array(Choice, { minItems: 2, maxItems: 25 }),
    otherOptionPlaceholder: Type.Optional(Localized),
    shuffleOption,
  }),
} as const satisfies Record<string, TObject>;

type QuestionType = keyof typeof questionShapes;

/** A question in a block, which has the labels of the buttons and the logic. */
export type Element = { [Type in QuestionType]: Static<(typeof questionShapes)[Type]> }[QuestionType];

export const questionDefaults: Readonly<Partial<Record<QuestionType, object>>> = {
  openText: { inputType: 'text', charLimit: { enabled: false } },
  pictureSelection: { allowMulti: false },
};

export function isQuestionType(type: unknown): type is QuestionType {
  return typeof type === 'string' && Object.hasOwn(questionShapes, type);
}
