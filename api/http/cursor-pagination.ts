/** The cursor of a v3 list: the sorted value and the id of the last row of a page. */
import { type RawBuilder, type SqlBool, sql } from 'kysely';
import { invalidFields } from '#api/errors.ts';

export interface Cursor {
  /** The order of the list. A cursor is valid for one order only. */
  readonly sortBy: string;
  readonly value: string;
  readonly id: string;
}

/** A name of a survey has up to 1,000 characters, which take up to six bytes each as JSON. */
const CURSOR_LENGTH_MAX = 8_192;

export function writeCursor({ sortBy, value, id }: Cursor): string {
  return Buffer.from(JSON.stringify([sortBy, value, id])).toString('base64url');
}

/** @throws ApiError invalid_fields for a text that is not a cursor of this order */
export function readCursor(text: string | undefined, sortBy: string): Cursor | null {
  if (text === undefined) return null;
  const parts = text.length > CURSOR_LENGTH_MAX ? null : parse(text);
  const [sorted, value, id] = Array.isArray(parts) && parts.length === 3 ? parts : [];
  const isText = (part: unknown): part is string => typeof part === 'string' && !part.includes('\0');
  if (!isText(sorted) || !isText(value) || !isText(id)) {
    throw invalidFields({ cursor: 'is not the nextCursor of a page' });
  }
  if (sorted !== sortBy) throw invalidFields({ cursor: `is of a list that is sorted by ${sorted}` });
  return { sortBy, value, id };
}

/** Selects the rows after the cursor, in the order of its column and `id`. @param direction of both */
export function isAfter({ sortBy, value, id }: Cursor, direction: 'asc' | 'desc'): RawBuilder<SqlBool> {
  const beyond = sql.raw(direction === 'asc' ? '>' : '<');
  return sql<SqlBool>`(${sql.ref(sortBy)}, ${sql.ref('id')}) ${beyond} (${value}, ${id})`;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
  } catch {
    // The text is not a cursor. The check above reports that.
    return null;
  }
}

/** @param rows one more than the page has, to find out whether there is a next page */
export function pageOf<Row extends { readonly id: string }>(
  rows: readonly Row[],
  limit: number,
  sortBy: string,
  sortedValue: (row: Row) => string,
): { readonly rows: readonly Row[]; readonly nextCursor: string | null } {
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  const hasMore = rows.length > limit && last !== undefined;
  return {
    rows: page,
    nextCursor: hasMore ? writeCursor({ sortBy, value: sortedValue(last), id: last.id }) : null,
  };
}
