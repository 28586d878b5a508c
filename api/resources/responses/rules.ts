/** Checks an answer against one rule. A rule for another kind of answer always holds. Pure. */

import { compilePattern, type PatternParams } from '#api/resources/surveys/patterns.ts';
import type { Element } from '#api/resources/surveys/question-types.ts';
import type { Rule } from '#api/resources/surveys/validation-rules.ts';
import { PATTERN_STEPS_MAX } from '#api/values/content-limits.ts';
import type { Answer } from './schema.ts';

const EMAIL_LENGTH_MAX = 320;
const phonePattern = /^\+?[\d\s().-]{5,30}$/;

/** @returns the problem, for the respondent; null if the rule holds */
export function brokenRule(
  rule: Rule,
  answer: Answer,
  element: Element,
  budget: PatternBudget,
): string | null {
  const text = typeof answer === 'string' || typeof answer === 'number' ? String(answer) : null;
  const number = text === null || text.trim() === '' ? Number.NaN : Number(text);

  switch (rule.type) {
    case 'minLength':
      return broken(
        text !== null && text.length < rule.params.min,
        `Must have at least ${rule.params.min} characters`,
      );
    case 'maxLength':
      return broken(
        text !== null && text.length > rule.params.max,
        `Must have at most ${rule.params.max} characters`,
      );
    case 'pattern':
      return broken(
        text !== null && !matches(rule.params, text, budget),
        'Does not have the expected format',
      );
    case 'email':
      return broken(text !== null && !isEmailAddress(text), 'Must be an email address');
    case 'url':
      return broken(text !== null && !URL.canParse(text), 'Must be a URL');
    case 'phone':
      return broken(text !== null && !phonePattern.test(text), 'Must be a phone number');
    case 'equals':
      return broken(text !== null && text !== String(rule.params.value), `Must be ${rule.params.value}`);
    case 'doesNotEqual':
      return broken(text === String(rule.params.value), `Must not be ${rule.params.value}`);
    case 'contains':
      return broken(
        text !== null && !text.includes(String(rule.params.value)),
        `Must contain ${rule.params.value}`,
      );
    case 'doesNotContain':
      return broken(
        text?.includes(String(rule.params.value)) === true,
        `Must not contain ${rule.params.value}`,
      );
    case 'minValue':
      return broken(text !== null && !(number >= rule.params.min), `Must be at least ${rule.params.min}`);
    case 'maxValue':
      return broken(text !== null && !(number <= rule.params.max), `Must be at most ${rule.params.max}`);
    case 'isGreaterThan':
      return broken(text !== null && !(number > rule.params.min), `Must be greater than ${rule.params.min}`);
    case 'isLessThan':
      return broken(text !== null && !(number < rule.params.max), `Must be less than ${rule.params.max}`);
    case 'isLaterThan':
      return broken(text !== null && !(text > rule.params.date), `Must be later than ${rule.params.date}`);
    case 'isEarlierThan':
      return broken(text !== null && !(text < rule.params.date), `Must be earlier than ${rule.params.date}`);
    case 'isBetween':
      return broken(
        text !== null && !isBetween(text, rule.params),
        `Must be between ${rule.params.startDate} and ${rule.params.endDate}`,
      );
    case 'isNotBetween':
      return broken(
        text !== null && isBetween(text, rule.params),
        `Must not be between ${rule.params.startDate} and ${rule.params.endDate}`,
      );
    default:
      return brokenListRule(rule, answer, element);
  }
}

type ListRule = Extract<
  Rule,
  {
    type:
      | 'minSelections'
      | 'maxSelections'
      | 'minRanked'
      | 'rankAll'
      | 'minRowsAnswered'
      | 'answerAllRows'
      | 'fileExtensionIs'
      | 'fileExtensionIsNot';
  }
>;

/** Checks choices, rows of a matrix and files. */
function brokenListRule(rule: ListRule, answer: Answer, element: Element): string | null {
  const items = Array.isArray(answer) ? answer : null;
  const rows = typeof answer === 'object' && !Array.isArray(answer) ? Object.values(answer) : null;

  switch (rule.type) {
    case 'minSelections':
      return broken(
        items !== null && items.length < rule.params.min,
        `Select at least ${rule.params.min} options`,
      );
    case 'maxSelections':
      return broken(
        items !== null && items.length > rule.params.max,
        `Select at most ${rule.params.max} options`,
      );
    case 'minRanked':
      return broken(
        items !== null && items.length < rule.params.min,
        `Rank at least ${rule.params.min} options`,
      );
    case 'rankAll':
      return broken(
        items !== null && 'choices' in element && items.length < element.choices.length,
        'Rank all options',
      );
    case 'minRowsAnswered':
      return broken(
        rows !== null && countFilled(rows) < rule.params.min,
        `Answer at least ${rule.params.min} rows`,
      );
    case 'answerAllRows':
      return broken(
        rows !== null && 'rows' in element && countFilled(rows) < element.rows.length,
        'Answer all rows',
      );
    case 'fileExtensionIs':
      return broken(
        items?.every((file) => hasExtension(file, rule.params.extensions)) === false,
        `Files must be of type ${rule.params.extensions.join(', ')}`,
      );
    case 'fileExtensionIsNot':
      return broken(
        items?.some((file) => hasExtension(file, rule.params.extensions)) === true,
        `Files must not be of type ${rule.params.extensions.join(', ')}`,
      );
    default:
      return rule satisfies never;
  }
}

function broken(isBroken: boolean, message: string): string | null {
  return isBroken ? message : null;
}

/** Whether a date is within a range. ISO dates sort as text. */
function isBetween(text: string, range: { readonly startDate: string; readonly endDate: string }): boolean {
  return text >= range.startDate && text <= range.endDate;
}

function countFilled(values: readonly string[]): number {
  return values.filter((value) => value !== '').length;
}

function hasExtension(file: string, extensions: readonly string[]): boolean {
  const path = file.split(/[?#]/, 1)[0]?.toLowerCase() ?? '';
  return extensions.some((extension) => path.endsWith(`.${extension.replace(/^\./, '').toLowerCase()}`));
}

/** The remaining work for patterns of one response. */
export interface PatternBudget {
  stepsLeft: number;
}

export function newPatternBudget(): PatternBudget {
  return { stepsLeft: PATTERN_STEPS_MAX };
}

/**
 * Whether a text matches a pattern. Text that cannot be matched within the budget does not match. A pattern that RE2
 * does not support is ignored.
 */
function matches(params: PatternParams, text: string, budget: PatternBudget): boolean {
  const pattern = compilePattern(params);
  if (pattern === null) return true;
  budget.stepsLeft -= pattern.size * text.length;
  return budget.stepsLeft >= 0 && pattern.test(text);
}

/** Whether a text is an address: a local part, one @, and a domain with a dot inside, without white space. */
export function isEmailAddress(text: string): boolean {
  if (text.length > EMAIL_LENGTH_MAX || /\s/.test(text)) return false;
  const [local = '', domain = '', ...rest] = text.split('@');
  return local !== '' && rest.length === 0 && domain.slice(1, -1).includes('.');
}
