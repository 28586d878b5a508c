/** A survey as v3 shows it. Pure. */

import { isRecord } from '#api/schemas.ts';
import type { Survey } from './store.ts';

const LANGUAGE_DEFAULT = 'en-US';

/** The codes in which this survey has, or may have, texts; the default first. */
export function languagesOf(survey: Survey): readonly string[] {
  const fallback = survey.languages.find((item) => item.default)?.language.code ?? LANGUAGE_DEFAULT;
  return [...new Set([fallback, ...survey.languages.map(({ language }) => language.code)])];
}

/** @param codes languages to show; null: all there are */
export function toSurveyResource(survey: Survey, codes: readonly string[] | null) {
  const { content } = survey;
  const [defaultLanguage = LANGUAGE_DEFAULT] = languagesOf(survey);
  const translate = (value: unknown): unknown => toLocales(value, defaultLanguage, codes);
  return {
    id: survey.id,
    workspaceId: survey.workspaceId,
    createdAt: survey.createdAt,
    updatedAt: survey.updatedAt,
    name: content.name,
    type: content.type,
    status: content.status,
    archivedAt: survey.archivedAt,
    metadata: translate(content.metadata),
    defaultLanguage,
    languages: survey.languages.map((item) => ({
      code: item.language.code,
      default: item.default,
      enabled: item.enabled,
      ...(item.language.alias === null ? {} : { alias: item.language.alias }),
    })),
    welcomeCard: translate(content.welcomeCard),
    blocks: translate(content.blocks),
    endings: translate(content.endings),
    hiddenFields: content.hiddenFields,
    variables: content.variables,
    ...(content.type === 'link'
      ? {}
      : {
          distribution: {
            displayOption: content.displayOption,
            displayPercentage: content.displayPercentage,
            displayLimit: content.displayLimit,
            recontactDays: content.recontactDays,
            autoClose: content.autoClose,
            autoComplete: content.autoComplete,
            delay: content.delay,
            triggers: survey.triggers.map(({ id }) => ({ actionClassId: id })),
          },
          targeting: { filters: survey.segment?.filters ?? [] },
        }),
  };
}

/** `{ default, de }` -> `{ 'en-US', de }`, wherever there is a localized text; what is not translated shows the default. */
function toLocales(value: unknown, defaultLanguage: string, codes: readonly string[] | null): unknown {
  if (Array.isArray(value)) return value.map((item) => toLocales(item, defaultLanguage, codes));
  if (!isRecord(value)) return value;
  const { default: text, ...others } = value;
  if (typeof text !== 'string' || !Object.values(others).every((other) => typeof other === 'string')) {
    return Object.fromEntries(
      Object.entries(value).map(([key, child]) => [key, toLocales(child, defaultLanguage, codes)]),
    );
  }
  const all: Record<string, unknown> = { [defaultLanguage]: text, ...others };
  if (codes === null) return all;
  return Object.fromEntries(codes.map((code) => [code, Object.hasOwn(all, code) ? all[code] : text]));
}
