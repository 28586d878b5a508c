/**
 * Builds the workspace state in both formats at once: the older one with plain texts, which contains the one that SDKs
 * read. Pure.
 *
 * Everybody may read this, so both formats list the fields that they show. They do not contain the PIN, follow-ups, the
 * author, the conditions of a segment, and internal names of surveys and segments.
 */
import type { Timestamp } from '#api/db/schema.ts';
import type { ActionClass } from '#api/resources/action-classes/store.ts';
import type { Language } from '#api/resources/languages/store.ts';
import { shownSegment } from '#api/resources/segments/store.ts';
import { toQuestions } from '#api/resources/surveys/blocks.ts';
import type { Survey } from '#api/resources/surveys/store.ts';
import type { Workspace } from '#api/resources/workspaces/store.ts';
import { withAbsoluteFiles } from '#api/values/absolute-files.ts';
import { isLocalized, isRecord } from '#api/values/schemas.ts';

/** Replaces names, which clients require but do not show. */
const NOT_TOLD = 'Deprecated: left out of the public API';
const LONG_AGO = '1970-01-01T00:00:00.000Z';

export interface StateParts {
  readonly workspace: Workspace;
  readonly actionClasses: readonly ActionClass[];
  readonly languages: readonly Language[];
  readonly surveys: readonly Survey[];
  readonly expiresAt: Timestamp;
  /** Site key of reCAPTCHA; null if it is not configured. */
  readonly recaptchaSiteKey: string | null;
  /** Our own files are stored as paths, and returned as addresses. */
  readonly publicUrl: string;
}

export function toState({
  workspace,
  actionClasses,
  languages,
  surveys,
  expiresAt,
  recaptchaSiteKey,
  publicUrl,
}: StateParts) {
  const { id, recontactDays, clickOutsideClose, overlay, placement, inAppSurveyBranding, styling } =
    workspace;
  const settings = { id, recontactDays, clickOutsideClose, overlay, placement, inAppSurveyBranding, styling };
  const actions = actionClasses.map(({ id, type, name, key, noCodeConfig }) => ({
    id,
    type,
    name,
    key,
    noCodeConfig,
  }));
  const state = {
    data: {
      actionClasses: actions,
      project: settings,
      surveys: surveys.map(toOuterSurvey),
      data: {
        actionClasses: actions,
        surveys: surveys.map((survey) => toInnerSurvey(survey, languages)),
        workspace: settings,
        project: settings,
        settings,
        ...(recaptchaSiteKey === null ? {} : { recaptchaSiteKey }),
      },
      expiresAt,
    },
  };
  return withAbsoluteFiles(state, publicUrl);
}

function common({ id, content }: Survey) {
  return {
    id,
    name: NOT_TOLD,
    status: content.status,
    displayOption: content.displayOption,
    displayLimit: content.displayLimit,
    displayPercentage: content.displayPercentage,
    recontactDays: content.recontactDays,
    delay: content.delay,
    autoClose: content.autoClose,
    hiddenFields: content.hiddenFields,
    variables: content.variables,
    showLanguageSwitch: content.showLanguageSwitch,
    styling: content.styling,
    workspaceOverwrites: content.workspaceOverwrites,
    projectOverwrites: content.workspaceOverwrites,
    recaptcha: content.recaptcha,
    isBackButtonHidden: content.isBackButtonHidden,
    isAutoProgressingEnabled: content.isAutoProgressingEnabled,
  };
}

/** Converts a survey to the format for SDKs, with localized texts as maps. SDKs know only the type `app`. */
function toInnerSurvey(survey: Survey, languages: readonly Language[]) {
  const { content } = survey;
  return {
    ...common(survey),
    type: 'app',
    questions: toQuestions(content.blocks),
    blocks: content.blocks,
    welcomeCard: content.welcomeCard,
    endings: content.endings,
    languages: content.languages.flatMap(({ language: code, ...flags }) =>
      languages
        .filter((language) => language.code === code)
        .map((language) => ({ ...flags, language: { ...language, projectId: survey.workspaceId } })),
    ),
    triggers: survey.triggers.map(({ name }) => ({ actionClass: { name } })),
    segment: toInnerSegment(survey),
  };
}

/** Converts a survey to the older format, with plain strings instead of texts by language. */
function toOuterSurvey(survey: Survey) {
  const { content } = survey;
  return {
    ...common(survey),
    environmentId: survey.workspaceId,
    createdAt: survey.createdAt,
    updatedAt: survey.updatedAt,
    // The format has these two, and readers may require them. Their values are private.
    createdBy: null,
    pin: null,
    type: content.type,
    autoComplete: content.autoComplete,
    redirectUrl: content.redirectUrl,
    surveyClosedMessage: content.surveyClosedMessage,
    isVerifyEmailEnabled: content.isVerifyEmailEnabled,
    singleUse: content.singleUse,
    productOverwrites: content.workspaceOverwrites,
    questions: toQuestions(content.blocks).map(plainQuestion),
    welcomeCard: plain(content.welcomeCard),
    endings: plain(content.endings),
    languages: content.languages,
    triggers: survey.triggers.map(({ name }) => ({ actionClass: name })),
    segment: toOuterSegment(survey),
  };
}

function plainQuestion({ logic, logicFallback, charLimit, ...question }: Record<string, unknown>): object {
  return {
    ...Object.fromEntries(Object.entries(question).map(([name, value]) => [name, plain(value)])),
    ...(logic === undefined ? {} : { logic }),
    ...(logicFallback === undefined ? {} : { logicFallback }),
    // This format has a flag. The other one has the limits themselves.
    ...(isRecord(charLimit) ? { charLimit: charLimit.enabled === true } : {}),
  };
}

/** Replaces each localized text by the text in the default language. */
function plain(value: unknown): unknown {
  if (isLocalized(value)) return value.default;
  if (Array.isArray(value)) return value.map(plain);
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, child]) => [name, plain(child)]));
}

function toOuterSegment(survey: Survey) {
  const segment = shownSegment(survey);
  if (segment === null) return null;
  const { id, isPrivate, filters } = segment;
  return {
    id,
    title: NOT_TOLD,
    description: NOT_TOLD,
    isPrivate,
    filters: concealed(id, filters),
    createdAt: LONG_AGO,
    updatedAt: LONG_AGO,
  };
}

function toInnerSegment(survey: Survey) {
  const segment = toOuterSegment(survey);
  if (segment === null) return null;
  return {
    ...segment,
    hasFilters: segment.filters.length > 0,
    workspaceId: survey.workspaceId,
    environmentId: survey.workspaceId,
    surveys: [],
  };
}

/** Tells SDKs whether there are conditions. The conditions themselves are private. */
function concealed(segmentId: string, filters: readonly unknown[]): readonly unknown[] {
  if (filters.length === 0) return [];
  return [
    {
      id: segmentId,
      connector: null,
      resource: {
        id: segmentId,
        root: { type: 'device', deviceType: 'phone' },
        value: 'phone',
        qualifier: { operator: 'equals' },
      },
    },
  ];
}
