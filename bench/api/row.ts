/** The row that a created response is, for those that insert it without the API. */
import { answer } from './operations.ts';

const columns = {
  id: '',
  createdAt: '',
  updatedAt: '',
  workspaceId: '',
  surveyId: '',
  finished: 1,
  data: JSON.stringify(answer),
  variables: '{}',
  ttc: '{"_total":0}',
  meta: '{"userAgent":{}}',
};

export type Row = typeof columns;

const names = Object.keys(columns).map((name) => `"${name}"`);

/** With what each column gets, in SQL. */
export function insertOf(values: readonly string[]): string {
  return `insert into "responses" (${names.join(', ')}) values (${values.join(', ')})`;
}

/** Likewise as text, for programs that have no parameters. @param id an expression that gives another one each time */
export function literalInsert(id: string, surveyId: string, workspaceId: string): string {
  const row: Row = { ...columns, ...times(), surveyId, workspaceId };
  const literals = Object.values(row).map((value) => (typeof value === 'number' ? `${value}` : `'${value}'`));
  return insertOf([id, ...literals.slice(1)]);
}

export const parameterCount = names.length;

export function valuesOf(
  given: Pick<Row, 'id' | 'workspaceId' | 'surveyId' | 'finished' | 'data'>,
): readonly (string | number)[] {
  return Object.values({ ...columns, ...times(), ...given });
}

function times(): Pick<Row, 'createdAt' | 'updatedAt'> {
  const now = new Date().toISOString();
  return { createdAt: now, updatedAt: now };
}
