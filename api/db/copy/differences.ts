/** Finds the first rows in which two tables differ. Both databases sort text by bytes, so one pass is enough. */
import type { Database } from '../schema.ts';
import { digestOfRow } from './digest.ts';
import { type Key, keyOf, type Readable, type Row, readSlices } from './slices.ts';

export interface Difference {
  readonly key: readonly (string | number)[];
  readonly kind: 'missing' | 'added' | 'changed';
}

export async function findDifferences(
  from: Database,
  to: Database,
  table: Readable,
  max: number,
): Promise<readonly Difference[]> {
  const found: Difference[] = [];
  const [ours, theirs] = [readRows(from, table), readRows(to, table)];
  const note = (row: Row, kind: Difference['kind']): void => {
    found.push({
      key: keyOf(table, row).map((part) => (typeof part === 'bigint' ? Number(part) : part)),
      kind,
    });
  };
  try {
    let [one, other] = [await nextOf(ours), await nextOf(theirs)];
    while (found.length < max && (one !== null || other !== null)) {
      const order = orderOf(table, one, other);
      if (order < 0 && one !== null) note(one, 'missing');
      else if (order > 0 && other !== null) note(other, 'added');
      else if (one !== null && other !== null && !isSameRow(table, one, other)) note(one, 'changed');
      if (order <= 0) one = await nextOf(ours);
      if (order >= 0) other = await nextOf(theirs);
    }
    return found;
  } finally {
    await ours.return(undefined);
    await theirs.return(undefined);
  }
}

async function* readRows(db: Database, table: Readable): AsyncGenerator<Row> {
  for await (const { rows } of readSlices(db, table)) yield* rows;
}

async function nextOf(rows: AsyncGenerator<Row>): Promise<Row | null> {
  const { value, done } = await rows.next();
  return done === true ? null : value;
}

function isSameRow({ columns }: Readable, one: Row, other: Row): boolean {
  return digestOfRow(columns, one) === digestOfRow(columns, other);
}

/**
 * Compares two rows by key. The result is negative if `one` comes first. null is the end of a table, which comes last.
 */
function orderOf(table: Readable, one: Row | null, other: Row | null): number {
  if (one === null) return 1;
  if (other === null) return -1;
  const [a, b]: readonly Key[] = [keyOf(table, one), keyOf(table, other)];
  for (const [at, value] of (a ?? []).entries()) {
    const order = compareValues(value, b?.[at] ?? '');
    if (order !== 0) return order;
  }
  return 0;
}

function compareValues(one: Key[number], other: Key[number]): number {
  if (typeof one === 'string' && typeof other === 'string')
    return Buffer.compare(Buffer.from(one), Buffer.from(other));
  return Number(one) - Number(other);
}
