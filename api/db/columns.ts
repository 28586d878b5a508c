/**
 * Types of columns. Timestamps (see timestamps.ts) and JSON are text and booleans are 0 or 1, so that SQLite and
 * PostgreSQL store the same bytes. Only stores see this encoding.
 */

export type Flag = 0 | 1;
export type Json = string;
/** ISO 8601, UTC, three decimals. */
export type Timestamp = string;

/** A row as its store returns it: readonly, and with some columns in another form. */
export type Decoded<Table, Forms = unknown> = Readonly<Omit<Table, keyof Forms> & Forms>;

export interface Row {
  id: string;
  createdAt: Timestamp;
  updatedAt: Timestamp;
}
