/**
 * Translates a document of v3 into the fields of v1: texts in the default language become `default`, the fields in
 * `distribution` move to the top, and blocks and variables without an id get one. Pure.
 */
import { isRecord, picked, reshape } from '#api/values/schemas.ts';
import type { Findings } from './findings.ts';
import { isQuestionType, questionShapes } from './question-types.ts';
import { SurveyContent, surveyDefaults } from './schema.ts';
import { distributionFields } from './v3-shapes.ts';

type Fields = Record<string, unknown>;

/** The languages of a survey's texts. */
export interface Locales {
  readonly defaultLanguage: string;
  /** Codes of the languages, including the default one. */
  readonly codes: ReadonlySet<string>;
}

export function triggersIn(
  distribution: unknown,
): readonly { readonly actionClass: { readonly id: unknown } }[] {
  const triggers =
    isRecord(distribution) && Array.isArray(distribution.triggers) ? distribution.triggers : [];
  return triggers.map((trigger: unknown) => ({
    actionClass: { id: isRecord(trigger) ? trigger.actionClassId : undefined },
  }));
}

/**
 * @param document with the shape of v3
 * @param findings receives the problems of translations
 * @returns the fields of the document, in the spelling of v1
 */
export function toContentFields(
  document: Fields,
  { defaultLanguage, codes }: Locales,
  newId: () => string,
  findings: Findings,
): Fields {
  const localized = (text: unknown, path: string): unknown => {
    if (!isRecord(text)) return text;
    const { [defaultLanguage]: given, ...others } = text;
    for (const code of Object.keys(others)) {
      if (findings.isFull()) break;
      if (codes.has(code)) continue;
      const reason = `"${code.slice(0, 64)}" is not a language of this survey; list it in languages`;
      findings.add(`${path}.${code}`, { reason, code: 'unsupported_locale', identifier: code });
    }
    if (given === undefined) {
      const reason = `The text in ${defaultLanguage}, the default language, is missing`;
      findings.add(path, { reason, code: 'missing_translation', identifier: defaultLanguage });
    }
    return { default: given, ...others };
  };
  const { properties } = SurveyContent;
  const { metadata, welcomeCard, blocks, endings, variables, distribution } = document;
  const fields: Fields = {
    ...picked(document, ['name', 'type', 'status', 'hiddenFields']),
    metadata: reshape(properties.metadata, metadata, localized, 'metadata'),
    welcomeCard: reshape(properties.welcomeCard, welcomeCard, localized, 'welcomeCard'),
    endings: reshape(properties.endings, endings, localized, 'endings'),
    blocks: Array.isArray(blocks)
      ? blocks.map((block: unknown, b) => toBlock(block, `blocks.${b}`))
      : undefined,
    variables: Array.isArray(variables) ? variables.map(withId) : undefined,
    ...(isRecord(distribution)
      ? { ...picked(surveyDefaults, distributionFields), ...picked(distribution, distributionFields) }
      : {}),
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

  function toBlock(block: unknown, path: string): unknown {
    const { elements, ...own } = isRecord(block) ? block : {};
    const shaped = reshape(properties.blocks.items, own, localized, path);
    return {
      ...withId(shaped),
      elements: Array.isArray(elements)
        ? elements.map((element: unknown, e) => toElement(element, `${path}.elements.${e}`))
        : elements,
    };
  }

  function toElement(element: unknown, path: string): unknown {
    const type = isRecord(element) ? element.type : undefined;
    return isQuestionType(type) ? reshape(questionShapes[type], element, localized, path) : element;
  }

  function withId(item: unknown): Fields {
    const fields = isRecord(item) ? item : {};
    return { ...fields, id: fields.id ?? newId() };
  }
}

/** Converts a path of v1 to the path in the caller's document. */
export function documentPath(path: string): string {
  const [first = ''] = path.split('.');
  if (distributionFields.some((name) => name === first)) return `distribution.${path}`;
  return path
    .replace(/^triggers\.(\d+)\.actionClass$/, 'distribution.triggers.$1.actionClassId')
    .replace(/^triggers\b/, 'distribution.triggers')
    .replace(/^filters\b/, 'targeting.filters');
}
