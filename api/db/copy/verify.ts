import type { Database } from '../schema.ts';
import { type Difference, findDifferences } from './differences.ts';
import { digestOf, isSame, type TableDigest } from './digest.ts';
import type { Shape } from './shape.ts';

export interface TableComparison {
  readonly table: string;
  readonly from: TableDigest;
  readonly to: TableDigest;
  readonly isSame: boolean;
  readonly differences: readonly Difference[];
}

const DIFFERENCES_MAX = 3;

/** @param onRows called with the number of rows of both databases since the last call */
export async function compare(
  { tables }: Shape,
  from: Database,
  to: Database,
  onRows: (count: number) => void = () => undefined,
): Promise<readonly TableComparison[]> {
  const found: TableComparison[] = [];
  for (const table of tables) {
    const [one, other] = [await digestOf(from, table, onRows), await digestOf(to, table, onRows)];
    const same = isSame(one, other);
    const differences = same ? [] : await findDifferences(from, to, table, DIFFERENCES_MAX);
    found.push({ table: table.name, from: one, to: other, isSame: same, differences });
  }
  return found;
}
