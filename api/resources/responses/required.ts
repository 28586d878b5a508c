/**
 * Finds the questions that a finished response must answer. Logic runs in the client, so a respondent may skip a
 * question that a jump leads past. Only questions that all respondents see are required. Pure.
 */
import { type Element, formParts } from '#api/resources/surveys/question-types.ts';
import type { Block } from '#api/resources/surveys/schema.ts';
import { isRecord } from '#api/values/schemas.ts';
import { SKIPPED } from './file-answers.ts';
import type { Answer } from './schema.ts';

/** Returns the questions of the blocks that no jump skips, in order. */
export function unavoidable(blocks: readonly Block[]): readonly Element[] {
  const positions = positionsOf(blocks);
  /** For each block, how many more jumps skip it than the block before it. */
  const change = new Array<number>(blocks.length + 1).fill(0);
  blocks.forEach((block, from) => {
    for (const target of targetsOf(block)) {
      // The target is an ending or unknown, so a respondent may skip everything before it.
      const to = (target === null ? undefined : positions.get(target)) ?? blocks.length;
      if (to <= from + 1) continue;
      change[from + 1] = (change[from + 1] ?? 0) + 1;
      change[to] = (change[to] ?? 0) - 1;
    }
  });
  let jumpsPast = 0;
  return blocks.flatMap(({ elements }, i) => {
    jumpsPast += change[i] ?? 0;
    return jumpsPast > 0 ? [] : elements;
  });
}

function positionsOf(blocks: readonly Block[]): ReadonlyMap<string, number> {
  const positions = new Map<string, number>();
  blocks.forEach(({ id, elements }, i) => {
    for (const element of elements) positions.set(element.id, i);
    positions.set(id, i);
  });
  return positions;
}

/** Returns the blocks that the logic of a block may lead to. null if unknown. */
function targetsOf({ logic = [], logicFallback }: Block): readonly (string | null)[] {
  const targets = logic.flatMap((rule): readonly (string | null)[] => {
    if (typeof rule.destination === 'string') return [rule.destination];
    if (!Array.isArray(rule.actions)) return [null];
    return rule.actions.flatMap((action: unknown) => {
      if (!isRecord(action) || typeof action.objective !== 'string') return [null];
      if (!action.objective.startsWith('jumpTo')) return [];
      return [typeof action.target === 'string' ? action.target : null];
    });
  });
  return logicFallback === undefined ? targets : [...targets, logicFallback];
}

/** Whether the answer is enough for a required question. */
export function isSatisfied(element: Element, answer: Answer | undefined): boolean {
  // Respondents can pass a button even if it is required, because there may be nothing to click.
  if (element.type === 'cta') return true;
  if (answer === undefined || isBlank(answer)) return false;
  switch (element.type) {
    case 'consent':
      return hasItem(answer, (text) => text === 'accepted');
    case 'cal':
      return hasItem(answer, (text) => text === 'booked');
    case 'fileUpload':
      return hasItem(answer, (text) => !isBlankText(text) && text !== SKIPPED);
    case 'address': {
      const { addressLine1, addressLine2, city, state, zip, country } = element;
      return areFilledIn(
        { addressLine1, addressLine2, city, state, zip, country },
        formParts.address,
        answer,
      );
    }
    case 'contactInfo': {
      const { firstName, lastName, email, phone, company } = element;
      return areFilledIn({ firstName, lastName, email, phone, company }, formParts.contactInfo, answer);
    }
    default:
      return true;
  }
}

interface FormPart {
  readonly show: boolean;
  readonly required: boolean;
}

/** Whether the parts of an address or of contact data that are shown and required have values. */
function areFilledIn<Name extends string>(
  parts: Readonly<Record<Name, FormPart>>,
  order: readonly Name[],
  answer: Answer,
): boolean {
  if (!Array.isArray(answer)) return true;
  return order.every((name, i) => {
    const { show, required } = parts[name];
    return !show || !required || !isBlankText(answer[i] ?? '');
  });
}

function hasItem(answer: Answer, isGood: (text: string) => boolean): boolean {
  if (Array.isArray(answer)) return answer.some(isGood);
  return typeof answer !== 'object' && isGood(String(answer));
}

export function isBlank(answer: Answer): boolean {
  if (typeof answer === 'string') return isBlankText(answer);
  if (Array.isArray(answer)) return answer.every(isBlankText);
  return typeof answer === 'object' && Object.values(answer).every(isBlankText);
}

function isBlankText(text: string): boolean {
  return text.trim() === '';
}
