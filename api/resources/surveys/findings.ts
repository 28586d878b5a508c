/**
 * The problems of a document, up to a bound. A caller fixes a short list at once, and a long one would delay other
 * requests.
 */
import type { Issue, Issues } from '#api/errors.ts';

const FINDINGS_MAX = 50;

export interface Findings {
  /** Problems by dotted path. */
  readonly issues: Issues;
  /** Whether the list is full, so that checks may stop. */
  isFull(): boolean;
  add(path: string, issue: string | Issue): void;
  addAll(issues: Issues): void;
}

export function createFindings(): Findings {
  const issues: Record<string, string | Issue> = {};
  let count = 0;
  const isFull = (): boolean => count >= FINDINGS_MAX;
  const add = (path: string, issue: string | Issue): void => {
    if (isFull() || Object.hasOwn(issues, path)) return;
    issues[path] = issue;
    count += 1;
  };
  return {
    issues,
    isFull,
    add,
    addAll: (more) => {
      for (const [path, issue] of Object.entries(more)) add(path, issue);
    },
  };
}
