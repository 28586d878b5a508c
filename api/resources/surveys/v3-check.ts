/**
 * Checks whether a document has the shape of a survey on v3. Elements, endings and logic must have the shape of their
 * type. Pure.
 */
import type { TSchema } from 'typebox';
import { FieldError, type Issues } from '#api/errors.ts';
import { type Checker, checker } from '#api/http/validation.ts';
import { isRecord } from '#api/values/schemas.ts';
import { createFindings, type Findings } from './findings.ts';
import { checkLogicShape } from './logic.ts';
import { checkSurveySize } from './size.ts';
import { elementShapes, endingShapes, OpenDocumentChange, OpenNewDocument } from './v3-shapes.ts';

export type Operation = 'create' | 'patch';

const documentCheckers: Readonly<Record<Operation, Checker<unknown>>> = {
  create: checker(OpenNewDocument),
  patch: checker(OpenDocumentChange),
};
const elementCheckers = checkersOf(elementShapes);
const endingCheckers = checkersOf(endingShapes);

/** @returns problems by dotted path; empty if the document is valid */
export function shapeIssues(operation: Operation, document: unknown): Issues {
  if (!isRecord(document)) return { body: 'must be object' };
  const tooLarge = sizeIssues(document);
  if (tooLarge !== null) return tooLarge;
  const findings = createFindings();
  findings.addAll(documentCheckers[operation].issues(document));
  checkBlocks(document.blocks, findings);
  checkTypes(document.endings, 'endings', endingCheckers, findings);
  return findings.issues;
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

function checkBlocks(blocks: unknown, findings: Findings): void {
  if (!Array.isArray(blocks)) return;
  blocks.forEach((block: unknown, b) => {
    if (!isRecord(block)) return;
    checkTypes(block.elements, `blocks.${b}.elements`, elementCheckers, findings);
    checkLogicShape(block.logic, `blocks.${b}.logic`, findings);
  });
}

function checkTypes(
  items: unknown,
  path: string,
  checkers: ReadonlyMap<string, Checker<unknown>>,
  findings: Findings,
): void {
  if (!Array.isArray(items)) return;
  items.forEach((item: unknown, i) => {
    if (!isRecord(item) || findings.isFull()) return;
    const known = typeof item.type === 'string' ? checkers.get(item.type) : undefined;
    if (known === undefined) {
      findings.add(`${path}.${i}.type`, `must be one of ${[...checkers.keys()].join(', ')}`);
    } else findings.addAll(known.issues(item, `${path}.${i}`));
  });
}

function checkersOf(shapes: ReadonlyMap<string, TSchema>): ReadonlyMap<string, Checker<unknown>> {
  return new Map([...shapes].map(([type, shape]) => [type, checker(shape)]));
}
