/**
 * What columns hold. Timestamps are text (see timestamps.ts), JSON is text, booleans are 0 or 1, so that SQLite and
 * PostgreSQL hold the same bytes; stores translate at this boundary and nobody else sees the encoding.
 */

export type Flag = 0 | 1;
/** JSON as text. */
export type Json = string;
/** ISO 8601, UTC, three decimals. */
export type Timestamp = string;

export interface Row {
  id: string;
  createdAt: Timestamp;
  updatedAt: Timestamp;
}
