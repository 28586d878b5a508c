/**
 * Reads one field of a small request body: JSON, or a form as browsers send it.
 *
 * Applications read such bodies in different ways, and a client could present one value to the gateway and another one
 * to the application. So a body that can be read in two ways is refused. The query is read as well, because PHP's
 * $_REQUEST, Rails and Java servlets take a field from either place.
 */
import { caseless, comparable } from './comparable.ts';
import { formText, nameOf, PARAMETERS_MAX, spellingOf } from './pairs.ts';

export const BODY_BYTES_MAX = 8192;

type BodyFormat = 'json' | 'form';

/** How the header section describes the body. */
type AnnouncedBody =
  | { readonly kind: 'announced'; readonly format: BodyFormat }
  | { readonly kind: 'absent' }
  /** The gateway does not read the body. */
  | { readonly kind: 'unread'; readonly reason: string }
  | Malformed;

export type SentBody =
  | { readonly kind: BodyFormat; readonly bytes: Buffer }
  | Exclude<AnnouncedBody, { kind: 'announced' }>;

interface Malformed {
  readonly kind: 'malformed';
  readonly reason: string;
}

/** The value of the field; null if the request does not have it. */
type Field = { readonly kind: 'value'; readonly value: string | null } | Malformed;

export const TOO_LARGE = { kind: 'unread', reason: 'the body is larger than 8 KiB' } as const;
const ABSENT = { kind: 'absent' } as const;
const CODED = { kind: 'unread', reason: 'the body has a Content-Encoding' } as const;
const OTHER_TYPE = {
  kind: 'unread',
  reason: 'the Content-Type is neither application/json nor application/x-www-form-urlencoded',
} as const;

const FORMATS: ReadonlyMap<string, BodyFormat> = new Map([
  ['application/json', 'json'],
  ['application/x-www-form-urlencoded', 'form'],
]);
/** Type and subtype, as the most lenient application separates them from what follows. */
const MEDIA_TYPE = /[^\s;]+/;
/** Parameters of a Content-Type (RFC 9110 8.3.1 and 5.6.6), each of which may be empty. */
const PARAMETERS =
  /^(?:[ \t]*;(?:[ \t]*[!#$%&'*+.^`|~\w-]+=(?:[!#$%&'*+.^`|~\w-]+|"(?:[^"\\]|\\.)*"))?)*[ \t]*$/;
const CHARSET = /charset/gi;
const UTF8 = /;[ \t]*charset=("?)(?:utf-?8|us-ascii)\1[ \t]*(?:;|$)/i;

interface CheckedFraming {
  readonly hasBody: boolean;
  readonly contentLength: number | null;
  /** Lower-case names of fields that are not forwarded; null if there are none. */
  readonly nominated: ReadonlySet<string> | null;
}

/** @param rawHeaders alternating names and values */
export function announcedBody(
  rawHeaders: readonly string[],
  { hasBody, contentLength, nominated }: CheckedFraming,
): AnnouncedBody {
  if (!hasBody) return ABSENT;
  // The application would not receive it, and would take the body for one of another type.
  if (nominated?.has('content-type') === true) return malformed('the Connection header names Content-Type');
  let type: string | null = null;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]?.toLowerCase();
    const value = rawHeaders[i + 1] ?? '';
    if (name === 'content-encoding' && !['', 'identity'].includes(value.trim().toLowerCase())) return CODED;
    if (name !== 'content-type') continue;
    if (type !== null || value.includes(',')) return malformed('the request has more than one Content-Type');
    type = value;
  }
  const [media = ''] = MEDIA_TYPE.exec(type ?? '') ?? [];
  const format = FORMATS.get(media.toLowerCase());
  if (type === null || format === undefined) return OTHER_TYPE;
  const parameters = type.replace(media, '');
  if (!PARAMETERS.test(parameters))
    return malformed(`the parameters of the Content-Type are malformed; send ${media.toLowerCase()} alone`);
  // Applications differ in names such as charset*, and in which of two they read.
  const charsets = parameters.match(CHARSET)?.length ?? 0;
  if (charsets > 1 || (charsets === 1 && !UTF8.test(parameters)))
    return malformed('the body must be in UTF-8, with no charset but one charset=utf-8 in its Content-Type');
  if (contentLength !== null && contentLength > BODY_BYTES_MAX) return TOO_LARGE;
  return { kind: 'announced', format };
}

/**
 * @param target the request target; each code unit stands for one byte
 * @param field its name in any case
 */
export function fieldOf(body: SentBody, target: string, field: string): Field {
  if (body.kind === 'malformed') return body;
  const mark = target.indexOf('?');
  const inQuery = mark < 0 ? [] : formValues(target.slice(mark + 1), field);
  const inBody = valuesIn(body, field);
  if (!Array.isArray(inQuery)) return inQuery;
  if (!Array.isArray(inBody)) return inBody;
  const [value = null, ...others] = new Set([...inQuery, ...inBody].map(comparable).filter(Boolean));
  return others.length > 0
    ? malformed(`the request presents two different values of ${field}; send one`)
    : { kind: 'value', value };
}

function valuesIn(body: Exclude<SentBody, Malformed>, field: string): string[] | Malformed {
  if (body.kind === 'absent' || body.kind === 'unread' || body.bytes.length === 0) return [];
  if (body.kind === 'json') return jsonValues(body.bytes, field);
  const text = body.bytes.toString('latin1');
  return NO_FORM.test(text)
    ? malformed('the body is no form; send it without a byte order mark and without braces around it')
    : formValues(text, field);
}

/** Some applications read JSON whatever its type says, and some remove a byte order mark in front of the first name. */
const NO_FORM = /^\s*(?:\{|\xef\xbb\xbf)/;

const DECODER = new TextDecoder('utf-8', { fatal: true });

function jsonValues(bytes: Buffer, field: string): string[] | Malformed {
  const text = decoded(bytes);
  if (text === null) return malformed('the body is not valid UTF-8');
  let whole: unknown;
  try {
    whole = JSON.parse(text);
  } catch {
    return malformed('the body is not valid JSON');
  }
  if (typeof whole !== 'object' || whole === null || Array.isArray(whole)) return [];
  const values: string[] = [];
  const wanted = nameOf(caseless(field));
  for (const [name, json] of members(text)) {
    // An application that copies the object would read the members of this one as its own.
    if (name === '__proto__') return malformed('the body has a member __proto__; remove it');
    const spelling = spellingOf(wanted, nameOf(caseless(name)));
    if (spelling === 'odd') return oddName(field);
    if (spelling === 'other') continue;
    const value: unknown = JSON.parse(json);
    if (value === null) continue;
    if (typeof value !== 'string' && typeof value !== 'number')
      return malformed(`${field} must be a string or a number`);
    values.push(String(value));
  }
  return values;
}

/**
 * Members of the outermost object, including those with the same name.
 *
 * @param text valid JSON
 * @returns names, and values as JSON
 */
function* members(text: string): Generator<[name: string, value: string]> {
  let depth = 0;
  let name: string | null = null;
  let valueFrom = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === '"') {
      const from = at++;
      while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
      if (depth !== 1 || name !== null) continue;
      name = JSON.parse(text.slice(from, at + 1)) as string;
      valueFrom = text.indexOf(':', at) + 1;
    } else if (char === '{' || char === '[') depth++;
    else if (char === '}' || char === ']' || char === ',') {
      if (depth === 1 && name !== null) {
        yield [name, text.slice(valueFrom, at)];
        name = null;
      }
      if (char !== ',') depth--;
    }
  }
}

const BAD_ESCAPE = /%(?![0-9a-f]{2})/i;

/** @param text each code unit stands for one byte */
function formValues(text: string, field: string): string[] | Malformed {
  const values: string[] = [];
  const pairs = text.split(/[&;]+/, PARAMETERS_MAX + 1);
  if (pairs.length > PARAMETERS_MAX)
    return malformed(`the query or the form has more than ${PARAMETERS_MAX} fields`);
  const wanted = nameOf(field);
  for (const pair of pairs) {
    const [name = ''] = pair.split('=', 1);
    // Classic ASP reads %u0065 as "e".
    if (BAD_ESCAPE.test(name))
      return malformed('the name of a field has a % without two hex digits after it');
    const spelling = spellingOf(wanted, nameOf(formText(name)));
    if (spelling === 'odd') return oddName(field);
    if (spelling === 'other' || name.length === pair.length) continue;
    const value = pair.slice(name.length + 1);
    if (BAD_ESCAPE.test(value)) return malformed(`${field} has a % without two hex digits after it`);
    const read = decoded(Buffer.from(formText(value), 'latin1'));
    if (read === null) return malformed(`${field} is not valid UTF-8`);
    values.push(read);
  }
  return values;
}

/** Some applications read such a name as the field, and others do not. */
function oddName(field: string): Malformed {
  return malformed(`the name of a field may be read as ${field}; send ${field} as a single value`);
}

function decoded(bytes: Buffer): string | null {
  try {
    return DECODER.decode(bytes);
  } catch {
    return null;
  }
}

function malformed(reason: string): Malformed {
  return { kind: 'malformed', reason };
}
