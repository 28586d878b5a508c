/**
 * The shapes of a survey on v3, derived from those of v1: texts are maps of locales without `default`, unknown fields
 * are refused, and fields for apps are in `distribution` and `targeting`.
 */
import { type TSchema, Type } from 'typebox';
import { Id, isRecord, MapOf, OneOf, picked, TextOrNull } from '#api/values/schemas.ts';
import { isQuestionType, questionDefaults, questionShapes } from './question-types.ts';
import { SurveyContent } from './schema.ts';

const { properties } = SurveyContent;

/** A text in the languages of its survey. */
export const LocaleText = {
  type: 'object',
  additionalProperties: { type: 'string' },
  description: 'Locale -> text. The default language of the survey must be there.',
  text: 'Give an object of locales and texts, such as {"en-US": "Hello"}',
};

interface Differences {
  /** Fields that have a default on v3. */
  readonly optional?: readonly string[];
  /** Fields without a default on v3. */
  readonly required?: readonly string[];
}

/** Derives the shape on v3 from one of v1. */
function closed(schema: TSchema, { optional = [], required = [] }: Differences = {}): TSchema {
  const { required: before, ...shape } = closedPart(schema);
  const kept = (Array.isArray(before) ? before : []).filter((name: unknown) =>
    optional.every((one) => one !== name),
  );
  const names = [...kept, ...required];
  return names.length === 0 ? shape : { ...shape, required: names };
}

function closedPart(schema: unknown): Record<string, unknown> {
  if (!isRecord(schema)) return {};
  if (schema.isLocalized === true) return LocaleText;
  // Written as in the description, so that the description finds the shape again.
  const { const: only, ...rest } = schema;
  const part: Record<string, unknown> = only === undefined ? rest : { ...rest, enum: [only] };
  if (Array.isArray(part.anyOf)) part.anyOf = part.anyOf.map(closedPart);
  if (isRecord(part.items)) part.items = closedPart(part.items);
  if (isRecord(part.properties)) {
    const entries = Object.entries(part.properties).map(([name, child]) => [name, closedPart(child)]);
    part.properties = Object.fromEntries(entries);
    part.additionalProperties = false;
  }
  return part;
}

/** Shapes by type. Each is checked separately, so that errors concern that type only. */
export const elementShapes: ReadonlyMap<string, TSchema> = new Map(
  Object.entries(questionShapes).map(([type, shape]) => {
    const defaults = isQuestionType(type) ? questionDefaults[type] : undefined;
    return [type, closed(shape, { optional: ['required', ...Object.keys(defaults ?? {})] })];
  }),
);

const ending = properties.endings.items;
/** Shapes by type, as for elements. */
export const endingShapes: ReadonlyMap<string, TSchema> = new Map([
  ['endScreen', closed(Type.Omit(ending, ['url', 'label']))],
  ['redirectToUrl', closed(Type.Pick(ending, ['id', 'type', 'url', 'label']), { required: ['url'] })],
]);

const Languages = Type.Array(
  Type.Object({
    code: Type.String({
      pattern: '^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$',
      text: 'Give a locale such as de-DE',
    }),
    default: Type.Optional(Type.Boolean()),
    enabled: Type.Boolean(),
    alias: Type.Optional(Type.String({ description: 'As in replies; a sent value changes nothing.' })),
  }),
);

/** The fields of a survey that v3 has in `distribution`. */
export const distributionFields = [
  'displayOption',
  'displayPercentage',
  'displayLimit',
  'recontactDays',
  'autoClose',
  'autoComplete',
  'delay',
] as const;

const Distribution = Type.Partial(
  Type.Object({
    ...picked(properties, distributionFields),
    triggers: Type.Array(Type.Object({ actionClassId: Id })),
  }),
);

/**
 * Returns the fields that create and patch share.
 *
 * @param element shape of an element of any type
 * @param end shape of an ending of any type
 */
function written(element: TSchema, end: TSchema) {
  const block = Type.Object({
    ...properties.blocks.items.properties,
    elements: Type.Array(element, { minItems: 1 }),
  });
  const { html: _, ...card } = properties.welcomeCard.properties;
  const variable = properties.variables.items;
  return {
    name: properties.name,
    status: OneOf(['draft', 'inProgress', 'paused', 'completed']),
    metadata: closed(properties.metadata),
    languages: closed(Languages),
    welcomeCard: closed(Type.Object(card), { optional: ['timeToFinish', 'showResponseCount'] }),
    blocks: Type.Array(closed(block, { optional: ['id'] }), { minItems: 1 }),
    endings: Type.Array(end),
    hiddenFields: closed(properties.hiddenFields),
    variables: Type.Array(closed(variable, { optional: ['id'] })),
    distribution: closed(Distribution),
    targeting: closed(Type.Object({ filters: Type.Array(Type.Unknown()) })),
  };
}

function newDocument(element: TSchema, end: TSchema) {
  const { name, blocks, ...others } = written(element, end);
  return Type.Object(
    {
      workspaceId: Id,
      name,
      blocks,
      type: Type.Optional(OneOf(['link', 'app'])),
      defaultLanguage: Type.Optional(Languages.items.properties.code),
      ...Type.Partial(Type.Object(others)).properties,
    },
    { additionalProperties: false },
  );
}

function documentChange(element: TSchema, end: TSchema) {
  return Type.Partial(Type.Object(written(element, end)), { additionalProperties: false });
}

/** `type` decides which fields exist. */
export const anyElement = Type.Union([...elementShapes.values()]);
export const anyEnding = Type.Union([...endingShapes.values()]);

/** The shape of a new document, for the description. */
export const NewDocument = newDocument(anyElement, anyEnding);
export const DocumentChange = documentChange(anyElement, anyEnding);

const open = MapOf(Type.Unknown());

/** The document without the schemas of elements and endings, because their type decides their other fields. */
export const OpenNewDocument = newDocument(open, open);
export const OpenDocumentChange = documentChange(open, open);

const identity = {
  id: Type.String(),
  workspaceId: Type.String(),
  createdAt: Type.String(),
  updatedAt: Type.String(),
  name: Type.String(),
  type: properties.type,
  status: properties.status,
  archivedAt: TextOrNull,
  defaultLanguage: Type.String(),
  languages: Type.Array(
    Type.Object({
      code: Type.String(),
      default: Type.Boolean(),
      enabled: Type.Boolean(),
      alias: Type.Optional(Type.String()),
    }),
  ),
};

/** The shape that serialises replies. Their parts were checked when they were written. */
export const SurveyDocument = Type.Object({
  ...identity,
  metadata: Type.Unknown(),
  welcomeCard: Type.Unknown(),
  blocks: Type.Unknown(),
  endings: Type.Unknown(),
  hiddenFields: Type.Unknown(),
  variables: Type.Unknown(),
  distribution: Type.Optional(Type.Unknown()),
  targeting: Type.Optional(Type.Unknown()),
});

/** The content of those parts. A link survey has neither of the last two. */
export function describedDocument() {
  // Surveys of older versions may have endings with fields of both types.
  const { distribution, targeting, name: _, status: __, ...parts } = written(anyElement, closed(ending));
  return Type.Object({
    ...identity,
    ...parts,
    distribution: Type.Optional(distribution),
    targeting: Type.Optional(targeting),
  });
}
