/** Makes a small body that a schema allows and that makes sense: names and ids fit the names of their fields. */
import { isRecord } from '#api/values/schemas.ts';

type Part = Readonly<Record<string, unknown>>;

interface SampleOptions {
  /** Targets of `$ref`s of the form `#/components/schemas/Name`. */
  readonly schemas: Part;
  /** Values by the name of their field. They replace those of the schema, and optional fields get them too. */
  readonly known: Part;
  /** Part of every text that must differ from all others. */
  readonly unique: string;
}

/** @returns an object with what the schema requires, and what is known */
export function sampleOf(schema: unknown, options: SampleOptions, name = ''): unknown {
  const part = resolved(schema, options.schemas);
  if (name in options.known) return options.known[name];
  if (Array.isArray(part.enum)) return part.enum[0];
  if ('const' in part) return part.const;
  const choices = part.anyOf ?? part.oneOf;
  if (Array.isArray(choices)) return sampleOf(choices[0], options, name);
  switch (Array.isArray(part.type) ? part.type[0] : part.type) {
    case 'string':
      return textOf(name, options.unique);
    case 'integer':
    case 'number':
      return typeof part.minimum === 'number' ? part.minimum : 1;
    case 'boolean':
      return false;
    case 'array':
      return Number(part.minItems ?? 0) > 0 ? [sampleOf(part.items, options)] : [];
    case 'null':
      return null;
    case 'object':
      return objectOf(part, options);
    default:
      return {};
  }
}

function objectOf(part: Part, options: SampleOptions): Part {
  const properties = isRecord(part.properties) ? part.properties : {};
  const required = new Set(Array.isArray(part.required) ? part.required.map(String) : []);
  const wanted = Object.entries(properties).filter(
    ([name]) => required.has(name) || (name in options.known && name !== 'environmentId'),
  );
  return Object.fromEntries(wanted.map(([name, child]) => [name, sampleOf(child, options, name)]));
}

function textOf(name: string, unique: string): string {
  switch (name) {
    case 'url':
      return 'https://93.184.216.34/hooks';
    case 'email':
      return `${unique}@example.com`;
    case 'password':
      return 'Password1';
    case 'fileName':
      return `${unique}.png`;
    case 'fileType':
      return 'image/png';
    default:
      return unique;
  }
}

export function resolved(schema: unknown, schemas: Part): Part {
  const part = isRecord(schema) ? schema : {};
  if (typeof part.$ref !== 'string') return part;
  const target = schemas[part.$ref.split('/').at(-1) ?? ''];
  if (!isRecord(target)) throw new Error(`${part.$ref} is not defined`);
  return target;
}
