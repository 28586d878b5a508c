/**
 * Checks answers against the types of their questions and the rules of the author. In an unfinished response only the
 * answers that it has are checked; a finished one must also have the required answers.
 */
import { type ApiError, badRequest, type Details } from '#api/errors.ts';
import { type Element, formParts } from '#api/resources/surveys/question-types.ts';
import type { BareSurvey } from '#api/resources/surveys/store.ts';
import type { Rule } from '#api/resources/surveys/validation-rules.ts';
import { shapeProblem } from './answer-shapes.ts';
import { isFileOf } from './file-answers.ts';
import { isBlank, isSatisfied, unavoidable } from './required.ts';
import { brokenRule, newPatternBudget, type PatternBudget } from './rules.ts';
import type { Answer, Answers } from './schema.ts';

const OTHER_LENGTH_MAX = 250;
const ANSWER_MISSING = 'This question needs an answer';

/** Returns the ids that answers may have: questions and hidden fields of the survey. */
export function fieldIdsOf(survey: BareSurvey): ReadonlySet<string> {
  return new Set([
    ...elementsOf(survey).map(({ id }) => id),
    ...(survey.content.hiddenFields.fieldIds ?? []),
  ]);
}

function elementsOf(survey: BareSurvey): readonly Element[] {
  return survey.content.blocks.flatMap(({ elements }) => elements);
}

export function fileError(survey: BareSurvey, data: Answers, publicUrl: string): ApiError | null {
  return foreignFileQuestion(survey, data, publicUrl) === null
    ? null
    : badRequest('Invalid file upload response');
}

/** Finds a question whose answer names files that are not ours or belong to another survey. null if there is none. */
export function foreignFileQuestion(survey: BareSurvey, data: Answers, publicUrl: string): string | null {
  const found = elementsOf(survey)
    .filter(({ type }) => type === 'fileUpload')
    .find(({ id }) => {
      const answer = answerIn(data, id);
      return answer !== undefined && !isFileOf(survey, id, answer, publicUrl);
    });
  return found?.id ?? null;
}

export function otherLengthError(survey: BareSurvey, data: Answers): ApiError | null {
  const questionId = longOtherQuestion(survey, data);
  return questionId === null ? null : badRequest('Response exceeds character limit', { questionId });
}

/** Finds a question whose answer has more free text than the choice "other" takes. null if there is none. */
export function longOtherQuestion(survey: BareSurvey, data: Answers): string | null {
  const tooLong = elementsOf(survey).find((element) => {
    if (element.type !== 'multipleChoiceSingle' && element.type !== 'multipleChoiceMulti') return false;
    const answer = answerIn(data, element.id);
    const texts = typeof answer === 'string' ? [answer] : Array.isArray(answer) ? answer : [];
    const long = texts.filter(({ length }) => length > OTHER_LENGTH_MAX);
    if (long.length === 0) return false;
    const labels = new Set(element.choices.flatMap(({ label }) => Object.values(label)));
    return long.some((text) => !labels.has(text));
  });
  return tooLong?.id ?? null;
}

interface Submission {
  /** The answers that this request sends. */
  readonly given: Answers;
  /** The answers of the response after the write. */
  readonly all: Answers;
  readonly finished: boolean;
  /**
   * Whether all required answers must be there: the response was not finished before, and the survey had every required
   * question from the beginning.
   */
  readonly mustBeComplete: boolean;
}

/** Lists all problems of the answers at once. Hidden fields and unknown ids may have any value. */
export function answerError(survey: BareSurvey, submission: Submission): ApiError | null {
  const budget = newPatternBudget();
  const problems = new Map<string, string>();
  for (const element of submission.mustBeComplete ? unavoidable(survey.content.blocks) : []) {
    if (element.required && !isSatisfied(element, answerIn(submission.all, element.id))) {
      problems.set(element.id, ANSWER_MISSING);
    }
  }
  for (const element of elementsOf(survey)) {
    const answer = answerIn(submission.given, element.id);
    if (answer === undefined || problems.has(element.id)) continue;
    const problem = problemOf(element, answer, submission.finished, budget);
    if (problem !== null) problems.set(element.id, problem);
  }
  const details: Details = Object.fromEntries(
    [...problems].map(([id, problem]) => [`response.data.${id}`, problem]),
  );
  return problems.size === 0 ? null : badRequest('Validation failed', details);
}

function problemOf(
  element: Element,
  answer: Answer,
  finished: boolean,
  budget: PatternBudget,
): string | null {
  if (finished && element.required && !isSatisfied(element, answer)) return ANSWER_MISSING;
  if (isBlank(answer)) return null;
  return shapeProblem(element, answer) ?? (brokenRules(element, answer, budget).join('; ') || null);
}

/** Returns the problems of an answer with the rules. With `or`, one rule that holds is enough. */
function brokenRules(element: Element, answer: Answer, budget: PatternBudget): readonly string[] {
  const { rules = [], logic = 'and' } = element.validation ?? {};
  const broken = rules.flatMap((rule) => {
    const part = partOf(element, rule, answer);
    const text = part === null || isBlank(part) ? null : brokenRule(rule, part, element, budget);
    return text === null ? [] : [text];
  });
  return logic === 'or' && broken.length < rules.length ? [] : broken;
}

/**
 * Returns the part of an answer that a rule applies to. A rule with a `field` applies to one part of an address or of
 * contact data.
 */
function partOf(element: Element, rule: Rule, answer: Answer): Answer | null {
  if (rule.field === undefined) return answer;
  if (element.type !== 'address' && element.type !== 'contactInfo') return answer;
  const parts: readonly string[] = formParts[element.type];
  return Array.isArray(answer) ? (answer[parts.indexOf(rule.field)] ?? null) : null;
}

function answerIn(data: Answers, id: string): Answer | undefined {
  return Object.hasOwn(data, id) ? data[id] : undefined;
}
