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
  if (typeof answer === 'string' || typeof answer === 'number') {
    return brokenTextRule(rule, String(answer), budget);
  }
  return Array.isArray(answer)
    ? brokenListRule(rule, answer, element)
    : brokenRowRule(rule, Object.values(answer), element);
}

function brokenTextRule(rule: Rule, text: string, budget: PatternBudget): string | null {
  const number = text.trim() === '' ? Number.NaN : Number(text);
  switch (rule.type) {
    case 'minLength':
      return unless(text.length >= rule.params.min, `Must have at least ${rule.params.min} characters`);
    case 'maxLength':
      return unless(text.length <= rule.params.max, `Must have at most ${rule.params.max} characters`);
    case 'pattern':
      return unless(matches(rule.params, text, budget), 'Does not have the expected format');
    case 'email':
      return unless(isEmailAddress(text), 'Must be an email address');
    case 'url':
      return unless(URL.canParse(text), 'Must be a URL');
    case 'phone':
      return unless(phonePattern.test(text), 'Must be a phone number');
    case 'equals':
      return unless(text === String(rule.params.value), `Must be ${rule.params.value}`);
    case 'doesNotEqual':
      return unless(text !== String(rule.params.value), `Must not be ${rule.params.value}`);
    case 'contains':
      return unless(text.includes(String(rule.params.value)), `Must contain ${rule.params.value}`);
    case 'doesNotContain':
      return unless(!text.includes(String(rule.params.value)), `Must not contain ${rule.params.value}`);
    case 'minValue':
      return unless(number >= rule.params.min, `Must be at least ${rule.params.min}`);
    case 'maxValue':
      return unless(number <= rule.params.max, `Must be at most ${rule.params.max}`);
    case 'isGreaterThan':
      return unless(number > rule.params.min, `Must be greater than ${rule.params.min}`);
    case 'isLessThan':
      return unless(number < rule.params.max, `Must be less than ${rule.params.max}`);
    case 'isLaterThan':
      return unless(text > rule.params.date, `Must be later than ${rule.params.date}`);
    case 'isEarlierThan':
      return unless(text < rule.params.date, `Must be earlier than ${rule.params.date}`);
    case 'isBetween':
    case 'isNotBetween': {
      const range = `between ${rule.params.startDate} and ${rule.params.endDate}`;
      const isInside = isBetween(text, rule.params);
      return rule.type === 'isBetween'
        ? unless(isInside, `Must be ${range}`)
        : unless(!isInside, `Must not be ${range}`);
    }
    default:
      return null;
  }
}

/** Checks choices and files. */
function brokenListRule(rule: Rule, items: readonly string[], element: Element): string | null {
  switch (rule.type) {
    case 'minSelections':
      return unless(items.length >= rule.params.min, `Select at least ${rule.params.min} options`);
    case 'maxSelections':
      return unless(items.length <= rule.params.max, `Select at most ${rule.params.max} options`);
    case 'minRanked':
      return unless(items.length >= rule.params.min, `Rank at least ${rule.params.min} options`);
    case 'rankAll':
      return unless(!('choices' in element) || items.length >= element.choices.length, 'Rank all options');
    case 'fileExtensionIs':
    case 'fileExtensionIsNot': {
      const { extensions } = rule.params;
      const named = items.filter((file) => hasExtension(file, extensions)).length;
      return rule.type === 'fileExtensionIs'
        ? unless(named === items.length, `Files must be of type ${extensions.join(', ')}`)
        : unless(named === 0, `Files must not be of type ${extensions.join(', ')}`);
    }
    default:
      return null;
  }
}

/** Checks the rows of a matrix. */
function brokenRowRule(rule: Rule, rows: readonly string[], element: Element): string | null {
  const filled = rows.filter((value) => value !== '').length;
  switch (rule.type) {
    case 'minRowsAnswered':
      return unless(filled >= rule.params.min, `Answer at least ${rule.params.min} rows`);
    case 'answerAllRows':
      return unless(!('rows' in element) || filled >= element.rows.length, 'Answer all rows');
    default:
      return null;
  }
}

function unless(holds: boolean, message: string): string | null {
  return holds ? null : message;
}

/** Whether a date is within a range. ISO dates sort as text. */
function isBetween(text: string, range: { readonly startDate: string; readonly endDate: string }): boolean {
  return text >= range.startDate && text <= range.endDate;
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
