/** Reads the content of a survey from a body: converts older spellings, adds defaults, and checks the whole. */

import { Type } from 'typebox';
import { badRequest, invalidFields } from '#api/errors.ts';
import { checker, timestampIn } from '#api/http/validation.ts';
import { QUESTIONS_MAX, SURVEY_BYTES_MAX } from '#api/values/content-limits.ts';
import { isRecord, picked } from '#api/values/schemas.ts';
import { toBlocks } from './blocks.ts';
import { Question, questionTypes, SurveyContent, surveyDefaults } from './schema.ts';

type Fields = Record<string, unknown>;

/** Maximum number of reported mistakes, because a caller cannot fix more at once. */
const ISSUES_MAX = 50;

const contentChecker = checker(SurveyContent);
const questionsChecker = checker(Type.Array(Question, { maxItems: QUESTIONS_MAX }));

/** Names of localized texts, which may be plain strings in a body. */
const cardTexts = ['headline', 'html', 'subheader', 'buttonLabel', 'backButtonLabel'];
const questionTexts = [
  ...cardTexts,
  ...['label', 'lowerLabel', 'upperLabel', 'placeholder', 'otherOptionPlaceholder'],
  ...['dismissButtonLabel', 'ctaButtonLabel'],
];

const readers: Readonly<Record<string, (value: unknown) => unknown>> = {
  blocks: eachOf((block) => ({ ...localized(block, cardTexts), elements: readQuestions(block.elements) })),
  endings: eachOf((ending) => localized(ending, cardTexts)),
  languages: eachOf(({ language, ...flags }) => ({
    default: false,
    enabled: true,
    ...flags,
    language: isRecord(language) ? language.code : language,
  })),
  metadata: (value) => (isRecord(value) ? localized(value, ['title', 'description']) : value),
  welcomeCard: (value) => (isRecord(value) ? readCard(value) : value),
  publishOn: (value) => readDate('publishOn', value),
  closeOn: (value) => readDate('closeOn', value),
};

/**
 * @param stored the content that the body changes; null for a new survey
 * @throws ApiError invalid_fields with a text for each path, bad_request for a survey with neither questions nor
 *   blocks, or with both
 */
export function readContent(body: unknown, stored: SurveyContent | null): SurveyContent {
  if (!isRecord(body)) throw invalidFields({ body: 'must be object' });
  if (Buffer.byteLength(JSON.stringify(body)) > SURVEY_BYTES_MAX) {
    throw invalidFields({ body: `A survey must not have more than ${SURVEY_BYTES_MAX} bytes` });
  }
  const { blocks, ...written } = Object.fromEntries(
    Object.entries(picked(body, Object.keys(SurveyContent.properties))).map(([name, value]) => [
      name,
      Object.hasOwn(readers, name) ? readers[name]?.(value) : value,
    ]),
  );
  const hasQuestions = isFilled(body.questions);
  const overwrites = [body.workspaceOverwrites, body.projectOverwrites, body.productOverwrites].find(
    (given) => given !== undefined,
  );
  if (hasQuestions && isFilled(blocks)) {
    throw badRequest('Cannot provide both questions and blocks. Please provide only one of these fields.');
  }
  if (stored === null && !hasQuestions && !isFilled(blocks)) {
    throw badRequest('Must provide either questions or blocks. Both cannot be empty.');
  }
  const content = {
    ...surveyDefaults,
    ...stored,
    ...written,
    ...(overwrites === undefined ? {} : { workspaceOverwrites: overwrites }),
    ...(isFilled(blocks) ? { blocks } : {}),
    ...(hasQuestions ? { blocks: blocksFrom(body.questions) } : {}),
  };
  if (!contentChecker.is(content)) throw invalidFields(contentChecker.issues(content));
  checkQuestions(content, hasQuestions);
  return content;
}

function isFilled(value: unknown): boolean {
  return value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0);
}

/** Checks questions under their own paths, before they become blocks. */
function blocksFrom(given: unknown): Fields[] {
  const questions = readQuestions(given);
  if (!questionsChecker.is(questions)) {
    throw invalidFields(questionsChecker.issues(questions, 'questions'));
  }
  return toBlocks(questions);
}

/** Checks that ids are unique, because answers are found by them, and that a question has what its type needs. */
function checkQuestions({ blocks, hiddenFields }: SurveyContent, areQuestions: boolean): void {
  const issues: Record<string, string> = {};
  const seen = new Set<string>();
  const claim = (id: string, path: string): void => {
    if (seen.has(id)) issues[path] = `"${id}" is used twice; ids are unique in a survey`;
    seen.add(id);
  };
  for (const [b, { elements }] of blocks.entries()) {
    for (const [e, element] of elements.entries()) {
      const path = areQuestions ? `questions.${b}` : `blocks.${b}.elements.${e}`;
      claim(element.id, `${path}.id`);
      for (const name of questionTypes[element.type]) {
        if (!Object.hasOwn(element, name)) issues[`${path}.${name}`] = 'Required';
      }
    }
  }
  for (const [i, id] of (hiddenFields.fieldIds ?? []).entries()) claim(id, `hiddenFields.fieldIds.${i}`);
  const found = Object.entries(issues).slice(0, ISSUES_MAX);
  if (found.length > 0) throw invalidFields(Object.fromEntries(found));
}

/** Reads the objects of a list. What is not one fails the check of the shape. */
function eachOf(read: (item: Fields) => unknown): (value: unknown) => unknown {
  return (value) =>
    Array.isArray(value) ? value.map((item: unknown) => (isRecord(item) ? read(item) : item)) : value;
}

const readQuestions = eachOf((given) => {
  const { type, charLimit } = given;
  const question: Fields = {
    required: true,
    ...(type === 'openText' ? { inputType: 'text', charLimit: { enabled: false } } : {}),
    ...localized(given, questionTexts),
    ...(typeof charLimit === 'boolean' ? { charLimit: { enabled: charLimit } } : {}),
  };
  const withLabels = eachOf((item) => localized(item, ['label']));
  for (const name of ['choices', 'rows', 'columns']) {
    if (name in question) question[name] = withLabels(question[name]);
  }
  return question;
});

/** The card has one text with two names. */
function readCard(given: Fields): Fields {
  const card = localized(given, cardTexts);
  const text = card.subheader ?? card.html;
  return {
    timeToFinish: true,
    showResponseCount: false,
    ...card,
    ...(text === undefined ? {} : { html: text, subheader: text }),
  };
}

function readDate(name: string, value: unknown): unknown {
  return typeof value === 'string' ? timestampIn(name, value) : value;
}

/** Accepts a plain string for a localized text, as the text of the default language. */
function localized(fields: Fields, names: readonly string[]): Fields {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      typeof value === 'string' && names.includes(name) ? { default: value } : value,
    ]),
  );
}
