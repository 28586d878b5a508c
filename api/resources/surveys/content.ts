/**
 * Reads the content of a survey: converts older spellings, localizes texts, adds defaults of missing fields, and then
 * checks everything. A partial update is merged into the stored content and checked as a whole. Members of questions,
 * blocks, endings and cards that no shape names are stored as they were sent.
 */
import { badRequest, invalidFields } from '#api/errors.ts';
import { checker } from '#api/http/validation.ts';
import { QUESTIONS_MAX, SURVEY_BYTES_MAX } from '#api/values/content-limits.ts';
import { isRecord, picked } from '#api/values/schemas.ts';
import { readTimestamp } from '#api/values/timestamps.ts';
import { toBlocks } from './blocks.ts';
import { crossIssues } from './cross-checks.ts';
import { isQuestionType, questionDefaults, questionShapes } from './question-types.ts';
import { SurveyContent, surveyDefaults } from './schema.ts';

type Fields = Record<string, unknown>;
type Issues = Record<string, string>;

/** Maximum number of reported mistakes, because a caller cannot fix more at once. */
const ISSUES_MAX = 50;

const ONLY_ELEMENT = /^blocks\.(\d+)(\.elements\.0)?/;

const contentChecker = checker(SurveyContent);
const contentNames = Object.keys(SurveyContent.properties);

/** Names of localized texts, which may be plain strings in a body. */
const elementTexts = [
  'headline',
  'subheader',
  'html',
  'label',
  'lowerLabel',
  'upperLabel',
  'placeholder',
  'otherOptionPlaceholder',
  'dismissButtonLabel',
  'ctaButtonLabel',
  'buttonLabel',
  'backButtonLabel',
];
const elementLists = ['choices', 'rows', 'columns'];
const cardTexts = ['headline', 'html', 'subheader', 'buttonLabel'];
const elementCheckers = new Map(
  Object.entries(questionShapes).map(([type, shape]) => [type, checker(shape)] as const),
);

/**
 * @param stored the content that the body changes; null for a new survey
 * @throws ApiError invalid_fields with a text for each path, bad_request for a survey with neither questions nor
 *   blocks, or with both
 */
export function readContent(body: unknown, stored: SurveyContent | null, newId: () => string): SurveyContent {
  if (!isRecord(body)) throw invalidFields({ body: 'must be object' });
  checkSize(body);
  const source = questionSource(body, stored === null);
  const issues: Issues = {};
  const written: Fields = { ...picked(body, contentNames), ...overwritesIn(body) };
  delete written.blocks;
  if (source === 'questions') {
    const questions = elementsOf(body.questions, 'questions', issues);
    written.blocks = toBlocks(questions, stored?.blocks ?? [], newId);
  } else if (source === 'blocks') {
    written.blocks = blocksOf(body.blocks, issues);
  }
  const merged = { ...(stored ?? surveyDefaults), ...withoutUndefined(written) };
  const content = normalizeTop(merged);
  Object.assign(issues, contentChecker.issues(content));
  refuse(issues, source);
  if (!contentChecker.is(content)) throw new Error('A survey without issues does not have its shape');
  refuse(crossIssues(content), source);
  return content;
}

/** Checks the size before the shape, because findings take time. @throws ApiError invalid_fields */
function checkSize(body: Fields): void {
  if (Buffer.byteLength(JSON.stringify(body)) > SURVEY_BYTES_MAX) {
    throw invalidFields({ body: `A survey must not have more than ${SURVEY_BYTES_MAX} bytes` });
  }
  const blocks = Array.isArray(body.blocks) ? body.blocks : [];
  const elements = blocks.flatMap((block: unknown) => (isRecord(block) ? block.elements : []));
  for (const [name, list] of [
    ['questions', body.questions],
    ['blocks', elements],
  ] as const) {
    if (!Array.isArray(list) || list.length <= QUESTIONS_MAX) continue;
    throw invalidFields({ [name]: `must not have more than ${QUESTIONS_MAX} questions` });
  }
}

/** Reports issues with the paths that the caller wrote. A question is the only element of its block. */
function refuse(issues: Issues, source: 'questions' | 'blocks' | 'stored'): void {
  const written = (path: string): string => {
    const asSource = source === 'questions' ? path.replace(ONLY_ELEMENT, 'questions.$1') : path;
    return asSource.replace(/^overwrites\b/, 'workspaceOverwrites');
  };
  const entries = Object.entries(issues).map(([path, issue]) => [written(path), issue] as const);
  if (entries.length > 0) throw invalidFields(Object.fromEntries(entries.slice(0, ISSUES_MAX)));
}

/** Returns the view that the caller wrote: questions or blocks. */
function questionSource(body: Fields, isNew: boolean): 'questions' | 'blocks' | 'stored' {
  const isFilled = (value: unknown): boolean =>
    value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0);
  const hasQuestions = isFilled(body.questions);
  const hasBlocks = isFilled(body.blocks);
  if (hasQuestions && hasBlocks) {
    throw badRequest('Cannot provide both questions and blocks. Please provide only one of these fields.');
  }
  if (hasQuestions) return 'questions';
  if (hasBlocks) return 'blocks';
  if (isNew) {
    throw badRequest('Must provide either questions or blocks. Both cannot be empty.');
  }
  return 'stored';
}

/** Converts every element to the shape of its type, and adds its problems to the issues. */
function elementsOf(value: unknown, path: string, issues: Issues): Fields[] {
  if (!Array.isArray(value)) {
    issues[path] = 'must be array';
    return [];
  }
  return value.map((given: unknown, i) => {
    const at = `${path}.${i}`;
    if (!isRecord(given)) {
      issues[at] = 'must be object';
      return {};
    }
    const { type } = given;
    if (!isQuestionType(type)) {
      issues[`${at}.type`] = `must be one of ${Object.keys(questionShapes).join(', ')}`;
      return {};
    }
    const element = localizedElement(normalizeElement(given, type));
    Object.assign(issues, elementCheckers.get(type)?.issues(element, at));
    return element;
  });
}

function blocksOf(value: unknown, issues: Issues): unknown {
  if (!Array.isArray(value)) return value;
  return value.map((block: unknown, i) => {
    if (!isRecord(block)) return block;
    const elements = elementsOf(block.elements, `blocks.${i}.elements`, issues);
    return { ...localized(withoutNull(block), elementTexts), elements };
  });
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

/** Localizes a question with its choices, and the parts of an address. */
function localizedElement(element: Fields): Fields {
  const inside = (value: unknown): unknown => (isRecord(value) ? localized(value, elementTexts) : value);
  return Object.fromEntries(
    Object.entries(localized(element, elementTexts)).map(([name, value]) => {
      if (elementLists.includes(name) && Array.isArray(value)) return [name, value.map(inside)];
      return [name, isRecord(value) && 'show' in value ? inside(value) : value];
    }),
  );
}

/**
 * Translates older spellings of a question, and adds its defaults. An optional field that is null counts as absent.
 */
function normalizeElement(given: Fields, type: keyof typeof questionShapes): Fields {
  const question: Fields = { required: true, ...questionDefaults[type], ...withoutNull(given) };
  if (typeof question.charLimit === 'boolean') question.charLimit = { enabled: question.charLimit };
  for (const name of ['rows', 'columns']) {
    const items = question[name];
    if (type === 'matrix' && Array.isArray(items)) question[name] = items.map(normalizeMatrixItem);
  }
  return question;
}

/** Adds an id to rows and columns, which used to be texts. */
function normalizeMatrixItem(item: unknown, i: number): unknown {
  const isText = typeof item === 'string' || (isRecord(item) && !('label' in item) && 'default' in item);
  return isText ? { id: String(i), label: item } : item;
}

/** Reads one field that has three names. The newest one takes precedence. */
function overwritesIn(body: Fields): Fields {
  const name = ['workspaceOverwrites', 'projectOverwrites', 'productOverwrites'].find(
    (key) => body[key] !== undefined,
  );
  // Callers do not write `overwrites`, which is our own name.
  if (name === undefined) return { overwrites: undefined };
  const given = body[name];
  if (!isRecord(given) || given.overlay !== undefined) return { overwrites: given };
  const overlay = given.darkOverlay === undefined ? {} : { overlay: given.darkOverlay ? 'dark' : 'light' };
  return { overwrites: { ...given, ...overlay } };
}

/** Normalizes the welcome card, whose `html` and `subheader` are two names of one text, and dates in other formats. */
function normalizeTop(content: unknown): unknown {
  if (!isRecord(content)) return content;
  const normalized = { ...content };
  if (isRecord(normalized.welcomeCard)) {
    const given = localized(withoutNull(normalized.welcomeCard), cardTexts);
    const card = { timeToFinish: true, showResponseCount: false, ...given };
    const text = 'subheader' in card ? card.subheader : 'html' in card ? card.html : undefined;
    normalized.welcomeCard = text === undefined ? card : { ...card, html: text, subheader: text };
  }
  for (const name of ['publishOn', 'closeOn']) {
    const given = normalized[name];
    // An unreadable date stays and fails the check, because an object is not a text.
    if (typeof given === 'string') normalized[name] = readTimestamp(given) ?? { unreadable: given };
  }
  if (Array.isArray(normalized.endings)) {
    normalized.endings = normalized.endings.map((ending: unknown) =>
      isRecord(ending) ? localized(withoutNull(ending), cardTexts) : ending,
    );
  }
  if (isRecord(normalized.metadata)) {
    normalized.metadata = localized(normalized.metadata, ['title', 'description']);
  }
  return normalized;
}

function withoutUndefined(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function withoutNull(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}
