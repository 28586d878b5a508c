/** TypeBox schemas that many resources share, and `reshape`, which converts a value to a schema. */
import { type Static, type TSchema, Type } from 'typebox';
import { ID_PATTERN } from './ids.ts';

export const Id = Type.String({ pattern: ID_PATTERN, text: 'Invalid cuid2' });

export function Nullable<S extends TSchema>(schema: S) {
  return Type.Union([schema, Type.Null()]);
}

/** A shorter description than that of `Nullable(Type.String())`. */
export const TextOrNull = Type.Unsafe<string | null>({ type: ['string', 'null'] });

/** The workspace of a new row, in either field. resources/workspaces/scope.ts checks that one is present. */
export const scopeFields = {
  workspaceId: Type.Optional(Nullable(Type.String())),
  environmentId: Type.Optional(
    Nullable(Type.String({ description: 'The name of `workspaceId` in older clients.' })),
  ),
};

/** The fields that replies show of every row of a workspace. */
export const rowFields = {
  id: Type.String(),
  environmentId: Type.String(),
  workspaceId: Type.String(),
  createdAt: Type.String(),
  updatedAt: Type.String(),
};

/** The user id that an SDK may send. */
export const UserId = Type.Optional(
  Nullable(Type.String({ maxLength: 255, text: 'User ID cannot exceed 255 characters' })),
);

/** Returns the schema of an object with any keys, and values of one schema. */
export function MapOf<S extends TSchema>(value: S, options: object = {}) {
  return Type.Unsafe<Record<string, Static<S>>>({ type: 'object', additionalProperties: value, ...options });
}

export function OneOf<const Values extends readonly string[]>(values: Values, options: object = {}) {
  return Type.Unsafe<Values[number]>({ type: 'string', enum: values, ...options });
}

/** A value that the schema serialises. It is only read, so all of it may be readonly. */
export type ReplyOf<S extends TSchema> = ReadonlyParts<Static<S>>;
type ReadonlyParts<T> = unknown extends T ? T : { readonly [Name in keyof T]: ReadonlyParts<T[Name]> };

/** Texts by language code. `default` is always present. */
export type LocalizedText = { readonly default: string; readonly [languageCode: string]: string };

export const Localized = Type.Unsafe<LocalizedText>({
  type: 'object',
  properties: { default: { type: 'string' } },
  required: ['default'],
  additionalProperties: { type: 'string' },
});

export function isLocalized(value: unknown): value is LocalizedText {
  return (
    isRecord(value) &&
    typeof value.default === 'string' &&
    Object.values(value).every((text) => typeof text === 'string')
  );
}

/** Returns the members with these names. */
export function picked<T extends object, Name extends keyof T & string>(
  from: T,
  names: readonly Name[],
): Pick<T, Name>;
export function picked(from: object, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(from).filter(([name]) => names.includes(name)));
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
