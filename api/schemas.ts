/** TypeBox shapes that many resources share, and the walk that brings a value into a shape. */
import { type Static, type TSchema, Type } from 'typebox';
import { ID_PATTERN } from './ids.ts';

/** The id of one of our rows. */
export const Id = Type.String({ pattern: ID_PATTERN });

export function Nullable<S extends TSchema>(schema: S) {
  return Type.Union([schema, Type.Null()]);
}

/** Where something is to be made. Either says it; where neither does, resources/workspaces/scope.ts has the words. */
export const scopeFields = {
  workspaceId: Type.Optional(Nullable(Type.String())),
  environmentId: Type.Optional(
    Nullable(Type.String({ description: 'What older clients know a workspace by; `workspaceId` wins.' })),
  ),
};

/** An object with free keys and values of one shape. */
export function MapOf<S extends TSchema>(value: S) {
  return Type.Unsafe<Record<string, Static<S>>>({ type: 'object', additionalProperties: value });
}

export function OneOf<const Values extends readonly string[]>(values: Values) {
  return Type.Unsafe<Values[number]>({ type: 'string', enum: values });
}

/** Language code -> text; `default` is always there. */
export type LocalizedText = { readonly default: string; readonly [languageCode: string]: string };

export const Localized = Type.Unsafe<LocalizedText>({
  type: 'object',
  properties: { default: { type: 'string' } },
  required: ['default'],
  additionalProperties: { type: 'string' },
  isLocalized: true,
});

interface SchemaPart {
  readonly isLocalized?: boolean;
  readonly properties?: Readonly<Record<string, SchemaPart>>;
  readonly items?: SchemaPart;
  readonly anyOf?: readonly SchemaPart[];
}

/**
 * Copies a value, keeping of every object only the keys that its shape names. What the shape leaves open is copied as
 * it is, and what does not fit is left for the check that follows.
 *
 * @param onLocalized what to put in place of a value where the shape has a localized text; told its dotted path
 * @param path that of the value itself
 */
export function reshape(schema: TSchema, value: unknown, onLocalized: OnLocalized, path = ''): unknown {
  return reshapePart(schema, value, onLocalized, path);
}

type OnLocalized = (value: unknown, path: string) => unknown;

function reshapePart(schema: SchemaPart, value: unknown, onLocalized: OnLocalized, path: string): unknown {
  if (value === null || value === undefined) return value;
  const part =
    schema.anyOf?.find((option) => option.properties || option.items || option.isLocalized) ?? schema;
  if (part.isLocalized === true) return onLocalized(value, path);
  const { items, properties } = part;
  const at = path === '' ? '' : `${path}.`;
  if (items !== undefined && Array.isArray(value)) {
    return value.map((item, i) => reshapePart(items, item, onLocalized, at + i));
  }
  if (properties !== undefined && typeof value === 'object' && !Array.isArray(value)) {
    return Object.fromEntries(
      Object.entries(value)
        .filter(([name, child]) => child !== undefined && Object.hasOwn(properties, name))
        .map(([name, child]) => [name, reshapePart(properties[name] ?? {}, child, onLocalized, at + name)]),
    );
  }
  return value;
}

/** A plain string is accepted where a localized text belongs: it is the default language's. */
export function localize(value: unknown): unknown {
  return typeof value === 'string' ? { default: value } : value;
}

/** The default language's text, for readers that expect a plain string. */
export function plainText(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'default' in value ? value.default : value;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
