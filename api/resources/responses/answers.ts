/**
 * Holds answers to the rules of their questions. Only rules that a survey sets are enforced, and only on questions that
 * were answered: which questions a respondent gets to see is decided by logic that runs in the client, so the server
 * cannot tell a skipped question from a forgotten one.
 */
import { type ApiError, badRequest, type Details } from '#api/errors.ts';
import { type Element, formParts } from '#api/resources/surveys/question-types.ts';
import type { Survey } from '#api/resources/surveys/store.ts';
import type { Rule } from '#api/resources/surveys/validation-rules.ts';
import { isFileOf } from './file-answers.ts';
import { brokenRule, newPatternBudget, type PatternBudget } from './rules.ts';
import type { Answer, Answers } from './schema.ts';

const OTHER_LENGTH_MAX = 250;

/** Ids that answers may have: the survey's questions and hidden fields. */
export function fieldIdsOf(survey: Survey): ReadonlySet<string> {
  return new Set([
    ...elementsOf(survey).map(({ id }) => id),
    ...(survey.content.hiddenFields.fieldIds ?? []),
  ]);
}

function elementsOf(survey: Survey): readonly Element[] {
  return survey.content.blocks.flatMap(({ elements }) => elements);
}

export function fileError(survey: Survey, data: Answers, publicUrl: string): ApiError | null {
  return foreignFileQuestion(survey, data, publicUrl) === null
    ? null
    : badRequest('Invalid file upload response');
}

/** The question that is answered with files that are not ours, or another survey's; null: none is. */
export function foreignFileQuestion(survey: Survey, data: Answers, publicUrl: string): string | null {
  const found = elementsOf(survey)
    .filter(({ type }) => type === 'fileUpload')
    .find(({ id }) => {
      const answer = answerIn(data, id);
      return answer !== undefined && !isFileOf(survey, id, answer, publicUrl);
    });
  return found?.id ?? null;
}

export function otherLengthError(survey: Survey, data: Answers): ApiError | null {
  const questionId = longOtherQuestion(survey, data);
  return questionId === null ? null : badRequest('Response exceeds character limit', { questionId });
}

/** The question with more free text in place of a choice than it takes; null: there is none. */
export function longOtherQuestion(survey: Survey, data: Answers): string | null {
  const tooLong = elementsOf(survey).find((element) => {
    if (element.type !== 'multipleChoiceSingle' && element.type !== 'multipleChoiceMulti') return false;
    const labels = new Set(element.choices.flatMap(({ label }) => Object.values(label)));
    const answer = answerIn(data, element.id);
    const texts = typeof answer === 'string' ? [answer] : Array.isArray(answer) ? answer : [];
    return texts.some((text) => text.length > OTHER_LENGTH_MAX && !labels.has(text));
  });
  return tooLong?.id ?? null;
}

/** Every broken rule of every answered question, at once. */
export function ruleError(survey: Survey, data: Answers): ApiError | null {
  const budget = newPatternBudget();
  const details: Details = Object.fromEntries(
    elementsOf(survey).flatMap((element) => {
      const answer = answerIn(data, element.id);
      const texts = answer === undefined || isBlank(answer) ? [] : brokenRules(element, answer, budget);
      return texts.length === 0 ? [] : [[`response.data.${element.id}`, texts.join('; ')]];
    }),
  );
  return Object.keys(details).length === 0 ? null : badRequest('Validation failed', details);
}

/** With `or`, one rule that holds is enough. */
function brokenRules(element: Element, answer: Answer, budget: PatternBudget): readonly string[] {
  const { rules = [], logic = 'and' } = element.validation ?? {};
  const broken = rules.flatMap((rule) => {
    const part = partOf(element, rule, answer);
    const text = part === null || isBlank(part) ? null : brokenRule(rule, part, element, budget);
    return text === null ? [] : [text];
  });
  return logic === 'or' && broken.length < rules.length ? [] : broken;
}

/** A rule with a `field` speaks of one part of an address or of contact data. */
function partOf(element: Element, rule: Rule, answer: Answer): Answer | null {
  if (rule.field === undefined) return answer;
  if (element.type !== 'address' && element.type !== 'contactInfo') return answer;
  const parts: readonly string[] = formParts[element.type];
  return Array.isArray(answer) ? (answer[parts.indexOf(rule.field)] ?? null) : null;
}

function isBlank(answer: Answer): boolean {
  if (typeof answer === 'string') return answer === '';
  if (Array.isArray(answer)) return answer.every((item) => item === '');
  return typeof answer === 'object' && Object.keys(answer).length === 0;
}

function answerIn(data: Answers, id: string): Answer | undefined {
  return Object.hasOwn(data, id) ? data[id] : undefined;
}
