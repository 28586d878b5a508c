/**
 * Reads the content of a survey: converts older spellings, localizes texts, adds defaults of missing fields, and then
 * checks everything. A partial update is merged into the stored content and checked as a whole.
 */
import { badRequest, invalidFields } from '#api/errors.ts';
import { checker } from '#api/http/validation.ts';
import { isRecord, localize, reshape } from '#api/values/schemas.ts';
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
  const source = questionSource(body, stored === null);
  const issues: Issues = {};
  const written: Fields = { ...body, ...overwritesIn(body) };
  delete written.blocks;
  if (source === 'questions') {
    const questions = elementsOf(body.questions, 'questions', issues);
    written.blocks = toBlocks(questions, stored?.blocks ?? [], newId);
  } else if (source === 'blocks') {
    written.blocks = blocksOf(body.blocks, issues);
  }
  const merged = { ...(stored ?? surveyDefaults), ...withoutUndefined(written) };
  const content = normalizeTop(reshape(SurveyContent, merged, localize));
  Object.assign(issues, contentChecker.issues(content));
  refuse(issues, source);
  if (!contentChecker.is(content)) throw new Error('A survey without issues does not have its shape');
  refuse(crossIssues(content), source);
  return content;
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
    const blockPart = reshape(SurveyContent.properties.blocks.items, given, localize);
    const { id: _id, name: _name, elements: _elements, ...kept } = isRecord(blockPart) ? blockPart : {};
    const shaped = reshape(questionShapes[type], normalizeElement(given, type), localize);
    Object.assign(issues, elementCheckers.get(type)?.issues(shaped, at));
    return { ...kept, ...(isRecord(shaped) ? shaped : {}) };
  });
}

function blocksOf(value: unknown, issues: Issues): unknown {
  if (!Array.isArray(value)) return value;
  return value.map((block: unknown, i) => {
    if (!isRecord(block)) return block;
    const elements = elementsOf(block.elements, `blocks.${i}.elements`, issues);
    return { ...withoutNull(block), elements };
  });
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
    const card = { timeToFinish: true, showResponseCount: false, ...withoutNull(normalized.welcomeCard) };
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
      isRecord(ending) ? withoutNull(ending) : ending,
    );
  }
  return normalized;
}

function withoutUndefined(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function withoutNull(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}
