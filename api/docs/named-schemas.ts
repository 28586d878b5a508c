/** Turns our schemas into plain JSON Schema for other tools, and names schemas that occur often. Pure. */
import { isRecord } from '#api/values/schemas.ts';
import type { NamedShape } from './components.ts';

/** Keywords of our own code (validation.ts, schemas.ts) that other tools do not know. */
const OURS: ReadonlySet<string> = new Set(['text']);

export interface Namer {
  /** Returns the schema without our keywords, with references in place of named parts. */
  refer(schema: unknown): unknown;
  components(): Record<string, unknown>;
}

export function createNamer(shapes: readonly NamedShape[]): Namer {
  const nameOf = new Map<string, string>();
  for (const { name, used, shown } of shapes) {
    for (const shape of [used, shown]) {
      if (shape !== null) nameOf.set(keyOf(clean(shape)), name);
    }
  }

  /** @param own name of the schema that is being defined, which is not replaced by a reference */
  const refer = (schema: unknown, own: string | null): unknown => {
    if (!isRecord(schema)) return schema;
    const name = nameOf.get(keyOf(schema));
    if (name !== undefined && name !== own) return { $ref: `#/components/schemas/${name}` };
    return mapParts(schema, (part) => refer(part, null));
  };

  return {
    refer: (schema) => refer(clean(schema), null),
    components: () => Object.fromEntries(shapes.map(({ name, shown }) => [name, refer(clean(shown), name)])),
  };
}

function clean(schema: unknown): unknown {
  if (!isRecord(schema)) return schema;
  const kept = Object.fromEntries(Object.entries(schema).filter(([key]) => !OURS.has(key)));
  return mapParts(kept, clean);
}

/** Applies `change` to each schema directly inside this one. Names of properties are not keywords. */
function mapParts(
  schema: Record<string, unknown>,
  change: (part: unknown) => unknown,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => {
      switch (key) {
        case 'properties':
        case 'patternProperties':
          return [
            key,
            isRecord(value)
              ? Object.fromEntries(Object.entries(value).map(([name, part]) => [name, change(part)]))
              : value,
          ];
        case 'anyOf':
        case 'allOf':
        case 'oneOf':
          return [key, Array.isArray(value) ? value.map(change) : value];
        case 'items':
        case 'additionalProperties':
          return [key, change(value)];
        default:
          return [key, value];
      }
    }),
  );
}

/** Returns equal texts for equal schemas, with keys in any order. */
function keyOf(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    isRecord(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
  );
}
