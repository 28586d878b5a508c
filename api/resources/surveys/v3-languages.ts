/**
 * The languages of a survey on v3. The default language comes first and never changes, because otherwise the same text
 * would suddenly be in another language. A language that the workspace does not have yet is added to it, because v3 has
 * no other way to add one.
 */
import type { Context } from '#api/context.ts';
import type { Database } from '#api/db/schema.ts';
import { type Issue, invalidFields } from '#api/errors.ts';
import { addLanguage, languages } from '#api/resources/languages/store.ts';
import { newRow } from '#api/resources/workspaces/table.ts';
import { isRecord } from '#api/values/schemas.ts';
import type { Findings } from './findings.ts';
import type { SurveyLanguage } from './references.ts';
import type { Survey } from './store.ts';
import type { Locales } from './v3-document.ts';
import { LANGUAGE_DEFAULT, languagesOf } from './v3-reply.ts';

const LOCALE = /^[a-z]{2}(-[A-Z][a-z]{3})?-[A-Z]{2}$/;

interface WantedLanguage {
  readonly code: string;
  readonly default: boolean;
  readonly enabled: boolean;
  /** The path in the caller's document. */
  readonly path: string;
}

interface LanguagePlan {
  readonly locales: Locales;
  /** The new languages of the survey; null if they stay as they are. */
  readonly languages: readonly WantedLanguage[] | null;
}

/**
 * @param document with the shape of v3
 * @param stored the survey that it changes; null for a new one
 * @param findings receives the problems of the languages
 */
export function planLanguages(
  document: Readonly<Record<string, unknown>>,
  stored: Survey | null,
  findings: Findings,
): LanguagePlan {
  const listed = listedIn(document.languages);
  const [storedDefault] = stored === null ? [] : languagesOf(stored);
  if (stored !== null && document.languages === undefined) {
    return {
      locales: { defaultLanguage: storedDefault ?? LANGUAGE_DEFAULT, codes: new Set(languagesOf(stored)) },
      languages: null,
    };
  }
  const named = typeof document.defaultLanguage === 'string' ? document.defaultLanguage : undefined;
  const flagged = listed.find((language) => language.default);
  const defaultLanguage = storedDefault ?? named ?? flagged?.code ?? LANGUAGE_DEFAULT;
  checkListed(listed, defaultLanguage, stored === null, findings);
  const isListed = listed.some(({ code }) => code === defaultLanguage);
  const isImplied = listed.length === 0 && defaultLanguage === LANGUAGE_DEFAULT;
  const first = { code: defaultLanguage, default: true, enabled: true, path: 'defaultLanguage' };
  const languages = listed.map((language) => ({ ...language, default: language.code === defaultLanguage }));
  return {
    locales: { defaultLanguage, codes: new Set([defaultLanguage, ...listed.map(({ code }) => code)]) },
    languages: isListed || isImplied ? languages : [first, ...languages],
  };
}

function listedIn(languages: unknown): readonly WantedLanguage[] {
  if (!Array.isArray(languages)) return [];
  return languages.filter(isRecord).map((language, i) => ({
    code: String(language.code),
    default: language.default === true,
    enabled: language.enabled === true,
    path: `languages.${i}.code`,
  }));
}

function checkListed(
  listed: readonly WantedLanguage[],
  defaultLanguage: string,
  isNew: boolean,
  findings: Findings,
): void {
  const seen = new Map<string, string>();
  listed.forEach((language, i) => {
    const { code, path } = language;
    const firstUsedAt = seen.get(code);
    if (firstUsedAt !== undefined) {
      findings.add(path, {
        reason: `"${code}" is listed twice`,
        code: 'duplicate_locale',
        identifier: code,
        firstUsedAt,
      });
    }
    seen.set(code, firstUsedAt ?? path);
    if (language.default && code !== defaultLanguage) {
      findings.add(`languages.${i}.default`, notTheDefault(code, defaultLanguage, isNew));
    }
  });
}

function notTheDefault(identifier: string, defaultLanguage: string, isNew: boolean): Issue {
  return isNew
    ? {
        reason: `The default language is ${defaultLanguage}; a survey has one`,
        code: 'invalid_locale',
        identifier,
        conflictsWith: 'defaultLanguage',
      }
    : {
        reason: `The default language of this survey is ${defaultLanguage}, and stays so`,
        code: 'immutable_identifier',
        identifier,
      };
}

/**
 * @throws ApiError invalid_fields for a code that is not a locale, forbidden if the workspace has too many languages
 */
export async function languageRows(
  trx: Database,
  context: Pick<Context, 'clock' | 'random'>,
  workspaceId: string,
  wanted: readonly WantedLanguage[],
): Promise<readonly SurveyLanguage[]> {
  if (wanted.length === 0) return [];
  const known = new Map(
    (await languages.listAll(trx, workspaceId)).map((language) => [language.code, language]),
  );
  const rows: SurveyLanguage[] = [];
  for (const { code, default: isDefault, enabled, path } of wanted) {
    let language = known.get(code);
    if (language === undefined) {
      // Older versions have other formats of codes. They are accepted only if the workspace has them.
      if (!LOCALE.test(code)) throw invalidFields({ [path]: noLocale(code) });
      language = { ...newRow(context, workspaceId), code, alias: null };
      await addLanguage(trx, language);
    }
    rows.push({ language, default: isDefault, enabled });
  }
  return rows;
}

function noLocale(identifier: string): Issue {
  const reason = `"${identifier}" is neither a locale such as de-DE or zh-Hans-CN nor a language of the workspace`;
  return { reason, code: 'invalid_locale', identifier };
}
