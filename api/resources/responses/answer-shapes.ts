/**
 * Checks whether an answer has the form that its question expects, and explains to the respondent if not. answers.ts
 * handles blank answers and the rules of the author. The time grows with the sum of the answer and the choices, not
 * with their product. Pure.
 */
import { type Element, formParts } from '#api/resources/surveys/question-types.ts';
import type { LocalizedText } from '#api/values/schemas.ts';
import { isDay } from '#api/values/timestamps.ts';
import { SKIPPED } from './file-answers.ts';
import { isEmailAddress } from './rules.ts';
import type { Answer } from './schema.ts';

const NPS_MAX = 10;
/** The id of the choice with a text field. */
const OTHER = 'other';
/** Renderers replace this part of a label by an earlier answer, so the label that they send is not the stored one. */
const RECALL = '#recall:';

const UNKNOWN_CHOICE = 'Give the label of a choice of this question';
const REPEATED_CHOICE = 'Give every choice once';

/** @returns null if the form is right */
export function shapeProblem(element: Element, answer: Answer): string | null {
  switch (element.type) {
    case 'openText':
      return textProblem(element, textsOf(answer));
    case 'multipleChoiceSingle': {
      const one = single(answer);
      return one === null ? 'Give one choice' : choiceProblem(element.choices, [one]);
    }
    case 'multipleChoiceMulti': {
      const texts = textsOf(answer);
      return texts === null ? 'Give a list of choices' : choiceProblem(element.choices, texts);
    }
    case 'nps':
      return scaleProblem(answer, 0, NPS_MAX);
    case 'rating':
    case 'csat':
    case 'ces':
      return scaleProblem(answer, 1, element.range);
    case 'cta':
      return wordProblem(answer, ['clicked', 'dismissed']);
    case 'consent':
      return wordProblem(answer, ['accepted', 'dismissed']);
    case 'cal':
      return wordProblem(answer, ['booked', 'dismissed']);
    case 'pictureSelection':
      return pictureProblem(element, textsOf(answer));
    case 'date': {
      const text = single(answer);
      return text !== null && isDate(text) ? null : 'Give a date as YYYY-MM-DD';
    }
    case 'fileUpload': {
      const files = filledIn(textsOf(answer) ?? []).filter((file) => file !== SKIPPED);
      return files.length > 1 && !element.allowMultipleFiles ? 'Give one file' : null;
    }
    case 'matrix':
      return matrixProblem(element, answer);
    case 'address':
    case 'contactInfo':
      return formProblem(element.type, answer);
    case 'ranking':
      return rankingProblem(element.choices, textsOf(answer));
    default:
      return element satisfies never;
  }
}

/** Finds a problem of a text answer. It also accepts a list of texts, which older documents use. */
function textProblem(
  { inputType, charLimit }: Extract<Element, { readonly type: 'openText' }>,
  texts: readonly string[] | null,
): string | null {
  if (texts === null) return 'Give a text';
  // People paste addresses and numbers with spaces around them.
  const filled = filledIn(inputType === 'text' ? texts : texts.map((text) => text.trim()));
  switch (inputType) {
    case 'email':
      return filled.every(isEmailAddress) ? null : 'Give an email address';
    case 'url':
      return filled.every((text) => URL.canParse(text))
        ? null
        : 'Give an address such as https://example.com';
    case 'number':
      return filled.every(isNumber) ? null : 'Give a number';
    case 'phone':
      return filled.every(isPhoneNumber) ? null : 'Give a phone number';
    case 'text': {
      if (charLimit.enabled !== true) return null;
      const { min = 0, max = Number.POSITIVE_INFINITY } = charLimit;
      if (filled.some(({ length }) => length < min)) return `Give at least ${min} characters`;
      return filled.some(({ length }) => length > max) ? `Give at most ${max} characters` : null;
    }
    default:
      return inputType satisfies never;
  }
}

interface Choice {
  readonly id: string;
  readonly label: LocalizedText;
}

function choiceProblem(choices: readonly Choice[], given: readonly string[]): string | null {
  const filled = filledIn(given);
  const names = namesIn(filled);
  const labels = labelsAmong(choices, names);
  const hasOther = choices.some(({ id }) => id === OTHER);
  if (!hasOther && labels !== null && labels.size < names.size) return UNKNOWN_CHOICE;
  // The text that a respondent typed may be the label of another choice.
  const own = hasOther ? 1 : 0;
  const isOnce = !hasRepeats(filled, (name) => (labels?.get(name) ?? 1 - own) + own);
  return isOnce ? null : REPEATED_CHOICE;
}

/** @param timesMax how often each name may be given */
function hasRepeats(given: readonly string[], timesMax: (name: string) => number): boolean {
  const counts = new Map<string, number>();
  for (const text of given) {
    const name = text.trim();
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    if (count > timesMax(name)) return true;
  }
  return false;
}

function namesIn(given: readonly string[]): ReadonlySet<string> {
  return new Set(given.map((text) => text.trim()));
}

/**
 * Maps the names that are labels in some language to the number of choices that have them, or returns null if only the
 * renderer knows some labels. There may be thousands of labels, so it reads each once and keeps only those that were
 * given.
 */
function labelsAmong(
  choices: readonly Choice[],
  names: ReadonlySet<string>,
): ReadonlyMap<string, number> | null {
  const counts = new Map<string, number>();
  for (const { label } of choices) {
    const found = new Set<string>();
    for (const text of Object.values(label)) {
      if (text.includes(RECALL)) return null;
      const name = text.trim();
      if (names.has(name)) found.add(name);
    }
    for (const name of found) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}

/** Finds a problem of a ranking, which contains labels or ids, each once. */
function rankingProblem(choices: readonly Choice[], given: readonly string[] | null): string | null {
  if (given === null) return 'Give a list of choices';
  const filled = filledIn(given);
  const names = namesIn(filled);
  const labels = labelsAmong(choices, names);
  const ids = new Set(choices.map(({ id }) => id));
  const isOpen = labels === null || ids.has(OTHER);
  if (!isOpen && [...names].some((name) => !labels.has(name) && !ids.has(name))) return UNKNOWN_CHOICE;
  return hasRepeats(filled, (name) => labels?.get(name) ?? 1) ? REPEATED_CHOICE : null;
}

function pictureProblem(
  { allowMulti, choices }: Extract<Element, { readonly type: 'pictureSelection' }>,
  given: readonly string[] | null,
): string | null {
  if (given === null) return 'Give a list of ids of choices';
  const ids = new Set(choices.map(({ id }) => id));
  const filled = filledIn(given);
  if (!filled.every((id) => ids.has(id))) return 'Give the id of a choice of this question';
  if (filled.length > 1 && !allowMulti) return 'Give one choice';
  return hasRepeats(filled, () => 1) ? REPEATED_CHOICE : null;
}

function matrixProblem(
  { rows, columns }: Extract<Element, { readonly type: 'matrix' }>,
  answer: Answer,
): string | null {
  if (typeof answer !== 'object' || Array.isArray(answer)) return 'Give a column for each row';
  if (!areLabels(rows, Object.keys(answer))) return 'Give labels of rows of this question';
  return areLabels(columns, filledIn(Object.values(answer)))
    ? null
    : 'Give labels of columns of this question';
}

function areLabels(choices: readonly Choice[], texts: readonly string[]): boolean {
  const names = namesIn(texts);
  const labels = labelsAmong(choices, names);
  return labels === null || labels.size === names.size;
}

function formProblem(type: keyof typeof formParts, answer: Answer): string | null {
  const parts: readonly string[] = formParts[type];
  if (!Array.isArray(answer) || answer.length > parts.length) {
    return `Give a list of ${parts.join(', ')}`;
  }
  const email = answer[parts.indexOf('email')] ?? '';
  return email === '' || isEmailAddress(email) ? null : 'Give an email address';
}

function scaleProblem(answer: Answer, min: number, max: number): string | null {
  const text = single(answer);
  const isOnScale = text !== null && /^\d{1,2}$/.test(text) && Number(text) >= min && Number(text) <= max;
  return isOnScale ? null : `Give a whole number from ${min} to ${max}`;
}

function wordProblem(answer: Answer, words: readonly string[]): string | null {
  const text = single(answer);
  return text !== null && words.includes(text) ? null : `Give one of ${words.join(', ')}`;
}

/** Returns the texts of an answer; null if the answer is a map. */
function textsOf(answer: Answer): readonly string[] | null {
  if (Array.isArray(answer)) return answer;
  return typeof answer === 'object' ? null : [String(answer)];
}

/** Returns the answer to a question with one text or number. A list with one entry counts as that entry. */
function single(answer: Answer): string | null {
  const [only, ...others] = textsOf(answer) ?? [];
  return only === undefined || others.length > 0 ? null : only;
}

function filledIn(texts: readonly string[]): readonly string[] {
  return texts.filter((text) => text !== '');
}

/** Maximum length of an answer with one of these formats. Longer answers match none. */
const FORMAT_LENGTH_MAX = 64;
const NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?$/;
/** Digits, and the separators that people use in phone numbers. */
const PHONE_NUMBER = /^\+?[\d\s()./-]+$/;
const PHONE_DIGITS_MIN = 2;
const DATE = /^(\d{4}-\d{2}-\d{2})(T[\d:.]+(Z|[+-]\d{2}:?\d{2})?)?$/;

function isNumber(text: string): boolean {
  return text.length <= FORMAT_LENGTH_MAX && NUMBER.test(text) && Number.isFinite(Number(text));
}

function isPhoneNumber(text: string): boolean {
  if (text.length > FORMAT_LENGTH_MAX || !PHONE_NUMBER.test(text)) return false;
  return text.replaceAll(/\D/g, '').length >= PHONE_DIGITS_MIN;
}

/** Whether the text is an existing date, `YYYY-MM-DD`. A time may follow. */
function isDate(text: string): boolean {
  if (text.length > FORMAT_LENGTH_MAX) return false;
  const [, day, time] = DATE.exec(text) ?? [];
  return day !== undefined && isDay(day) && (time === undefined || !Number.isNaN(Date.parse(text)));
}
