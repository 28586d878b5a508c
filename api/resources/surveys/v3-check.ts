/** Does a document have the shape of a survey on v3? Elements, endings and logic are held to the shape of their kind. Pure. */
import type { TSchema } from 'typebox';
import { FieldError, type Issues } from '#api/errors.ts';
import { type Checker, checker } from '#api/http/validation.ts';
import { isRecord } from '#api/schemas.ts';
import { logicShapeIssues } from './logic.ts';
import { checkSurveySize } from './size.ts';
import { elementShapes, endingShapes, OpenDocumentChange, OpenNewDocument } from './v3-shapes.ts';

/** A caller fixes a list of this length at once; a longer one helps nobody. */
export const ISSUES_MAX = 50;

export type Operation = 'create' | 'patch';

const documentCheckers: Readonly<Record<Operation, Checker<unknown>>> = {
  create: checker(OpenNewDocument),
  patch: checker(OpenDocumentChange),
};
const elementCheckers = checkersOf(elementShapes);
const endingCheckers = checkersOf(endingShapes);

/** @returns dotted path -> what is wrong there, empty when all is well */
export function shapeIssues(operation: Operation, document: unknown): Issues {
  if (!isRecord(document)) return { body: 'must be object' };
  const tooLarge = sizeIssues(document);
  if (tooLarge !== null) return tooLarge;
  const issues = {
    ...documentCheckers[operation].issues(document),
    ...blockIssues(document.blocks),
    ...typedIssues(document.endings, 'endings', endingCheckers),
  };
  return Object.fromEntries(Object.entries(issues).slice(0, ISSUES_MAX));
}

function sizeIssues(document: unknown): Issues | null {
  try {
    checkSurveySize(document);
    return null;
  } catch (error) {
    if (error instanceof FieldError) return error.issues;
    throw error;
  }
}

function blockIssues(blocks: unknown): Issues {
  const issues: Record<string, string> = {};
  if (!Array.isArray(blocks)) return issues;
  blocks.forEach((block: unknown, b) => {
    if (!isRecord(block)) return;
    Object.assign(
      issues,
      typedIssues(block.elements, `blocks.${b}.elements`, elementCheckers),
      logicShapeIssues(block.logic, `blocks.${b}.logic`),
    );
  });
  return issues;
}

function typedIssues(
  items: unknown,
  path: string,
  checkers: ReadonlyMap<string, Checker<unknown>>,
): Record<string, string> {
  const issues: Record<string, string> = {};
  if (!Array.isArray(items)) return issues;
  items.forEach((item: unknown, i) => {
    if (!isRecord(item)) return;
    const known = typeof item.type === 'string' ? checkers.get(item.type) : undefined;
    if (known === undefined)
      issues[`${path}.${i}.type`] = `must be one of ${[...checkers.keys()].join(', ')}`;
    else Object.assign(issues, known.issues(item, `${path}.${i}`));
  });
  return issues;
}

function checkersOf(shapes: ReadonlyMap<string, TSchema>): ReadonlyMap<string, Checker<unknown>> {
  return new Map([...shapes].map(([type, shape]) => [type, checker(shape)]));
}
