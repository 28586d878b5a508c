/** The format of a survey on v3: texts are maps of locales without `default`. Pure. */
import { Type } from 'typebox';
import { isRecord, picked, TextOrNull } from '#api/values/schemas.ts';
import { type Block, SurveyContent } from './schema.ts';
import type { Survey } from './store.ts';

const { properties } = SurveyContent;

/** The fields of a survey that v3 has in `distribution`. */
export const distributionFields = [
  'displayOption',
  'displayPercentage',
  'displayLimit',
  'recontactDays',
  'autoClose',
  'autoComplete',
  'delay',
] as const;

/** The parts were checked when they were written. A link survey has neither of the last two. */
export const SurveyDocument = Type.Object({
  id: Type.String(),
  workspaceId: Type.String(),
  createdAt: Type.String(),
  updatedAt: Type.String(),
  name: Type.String(),
  type: properties.type,
  status: properties.status,
  archivedAt: TextOrNull,
  defaultLanguage: Type.String(),
  languages: Type.Array(
    Type.Object({
      code: Type.String(),
      default: Type.Boolean(),
      enabled: Type.Boolean(),
      alias: Type.Optional(Type.String()),
    }),
  ),
  metadata: Type.Unknown(),
  welcomeCard: Type.Unknown(),
  blocks: Type.Unknown(),
  endings: Type.Unknown(),
  hiddenFields: Type.Unknown(),
  variables: Type.Unknown(),
  distribution: Type.Optional(Type.Unknown()),
  targeting: Type.Optional(Type.Unknown()),
});

const LANGUAGE_DEFAULT = 'en-US';

/** Returns the codes of the languages of a survey, the default one first. */
export function languagesOf(survey: Survey): readonly string[] {
  const fallback = survey.languages.find((item) => item.default)?.language.code ?? LANGUAGE_DEFAULT;
  return [...new Set([fallback, ...survey.languages.map(({ language }) => language.code)])];
}

/** @param chosen languages to show, with a text for each; null for the survey's languages, with the texts that exist */
export function toSurveyResource(survey: Survey, chosen: readonly string[] | null) {
  const { content } = survey;
  const codes = languagesOf(survey);
  const [defaultLanguage = LANGUAGE_DEFAULT] = codes;
  const translate = (value: unknown): unknown =>
    toLocales(value, { defaultLanguage, codes: chosen ?? codes, isComplete: chosen !== null });
  // In older versions `html` is the name of `subheader`.
  const { html: _, ...welcomeCard } = content.welcomeCard;
  return {
    ...survey,
    archivedAt: null,
    ...picked(content, ['name', 'type', 'status', 'hiddenFields', 'variables']),
    metadata: translate(content.metadata),
    defaultLanguage,
    languages: survey.languages.map((item) => ({
      code: item.language.code,
      default: item.default,
      enabled: item.enabled,
      ...(item.language.alias === null ? {} : { alias: item.language.alias }),
    })),
    welcomeCard: translate(welcomeCard),
    blocks: translate(content.blocks.map(toBlock)),
    endings: translate(content.endings),
    ...(content.type === 'link'
      ? {}
      : {
          distribution: {
            ...picked(content, distributionFields),
            triggers: survey.triggers.map(({ id }) => ({ actionClassId: id })),
          },
          targeting: { filters: survey.segment?.filters ?? [] },
        }),
  };
}

function toBlock(block: Block): object {
  return block.logic === undefined ? block : { ...block, logic: withElements(block.logic) };
}

/** Older versions write question instead of element. */
function withElements(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withElements);
  if (!isRecord(value)) return value;
  const copy = Object.fromEntries(Object.entries(value).map(([key, child]) => [key, withElements(child)]));
  return copy.type === 'question' && 'value' in copy ? { ...copy, type: 'element' } : copy;
}

interface Shown {
  readonly defaultLanguage: string;
  readonly codes: readonly string[];
  /** Whether texts that are not translated get the text of the default language. */
  readonly isComplete: boolean;
}

/** Turns `{ default, de }` into `{ 'en-US', de }`, for every localized text. */
function toLocales(value: unknown, shown: Shown): unknown {
  if (Array.isArray(value)) return value.map((item) => toLocales(item, shown));
  if (!isRecord(value)) return value;
  const { default: text, ...others } = value;
  if (typeof text !== 'string' || !Object.values(others).every((other) => typeof other === 'string')) {
    return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, toLocales(child, shown)]));
  }
  const { codes, defaultLanguage, isComplete } = shown;
  return Object.fromEntries(
    codes.flatMap((code) => {
      if (code !== defaultLanguage && Object.hasOwn(others, code)) return [[code, others[code]]];
      return isComplete || code === defaultLanguage ? [[code, text]] : [];
    }),
  );
}
