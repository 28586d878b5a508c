/**
 * Surveys that were answered lately: whoever answers one again asks the database for nothing but the insert, which looks
 * whether the survey is still the same (lone-write.ts). So no answer depends on what is kept here. The news only spare an
 * attempt in vain, and whoever refuses a response by a survey of here reads it anew first.
 *
 * Bounded in entries and in bytes; when it is full, the entry that was made first goes.
 */
import type { AnsweredSurvey } from '#api/resources/surveys/store.ts';
import type { Clock, Millis } from '#shared/clock.ts';

/** News may be missed: so long at most, a wrong body is refused for itself although its workspace has gone. */
const KEPT_MS: Millis = 5 * 60 * 1000;
const ENTRIES_MAX = 1_000;
/** Of documents as they are stored. As objects they take several times that. */
const LENGTH_MAX = 8_388_608;

export interface KnownSurveys {
  /** Was a survey found under this id of a workspace? */
  knowsScope(scopeId: string): boolean;
  /** @param scopeId as the client wrote it: a workspace id or a legacy environment id */
  find(scopeId: string, surveyId: string): AnsweredSurvey | null;
  keep(scopeId: string, survey: AnsweredSurvey): void;
  forget(scopeId: string, surveyId: string): void;
  /** Something in the workspace has changed. Takes both of its ids. */
  purge(workspace: { readonly workspaceId: string; readonly environmentId: string }): void;
  /** Anything may have changed. */
  purgeAll(): void;
}

export interface KnownSurveysOptions {
  readonly clock: Clock;
  readonly entriesMax?: number;
  readonly lengthMax?: number;
}

interface Entry {
  readonly scopeId: string;
  readonly survey: AnsweredSurvey;
  readonly goodUntil: Millis;
}

export function createKnownSurveys({
  clock,
  entriesMax = ENTRIES_MAX,
  lengthMax = LENGTH_MAX,
}: KnownSurveysOptions): KnownSurveys {
  const entries = new Map<string, Entry>();
  /** The keys of a scope's entries. */
  const scopes = new Map<string, Set<string>>();
  let length = 0;

  const remove = (key: string): void => {
    const entry = entries.get(key);
    if (entry === undefined) return;
    entries.delete(key);
    length -= entry.survey.documentLength;
    const keys = scopes.get(entry.scopeId);
    keys?.delete(key);
    if (keys?.size === 0) scopes.delete(entry.scopeId);
  };
  const removeScope = (scopeId: string): void => {
    for (const key of scopes.get(scopeId) ?? []) remove(key);
  };
  const good = (key: string): AnsweredSurvey | null => {
    const entry = entries.get(key);
    if (entry === undefined) return null;
    if (clock() < entry.goodUntil) return entry.survey;
    remove(key);
    return null;
  };
  /** No id that is kept has a slash. */
  const keyOf = (scopeId: string, surveyId: string): string => `${scopeId}/${surveyId}`;

  return {
    knowsScope: (scopeId) =>
      scopes
        .get(scopeId)
        ?.values()
        .some((key) => good(key) !== null) ?? false,
    find: (scopeId, surveyId) => good(keyOf(scopeId, surveyId)),
    keep(scopeId, survey) {
      const key = keyOf(scopeId, survey.id);
      remove(key);
      entries.set(key, { scopeId, survey, goodUntil: clock() + KEPT_MS });
      const keys = scopes.get(scopeId) ?? new Set();
      scopes.set(scopeId, keys.add(key));
      length += survey.documentLength;
      for (const [oldest] of entries) {
        if (entries.size <= entriesMax && length <= lengthMax) break;
        remove(oldest);
      }
    },
    forget: (scopeId, surveyId) => remove(keyOf(scopeId, surveyId)),
    purge({ workspaceId, environmentId }) {
      removeScope(workspaceId);
      removeScope(environmentId);
    },
    purgeAll() {
      entries.clear();
      scopes.clear();
      length = 0;
    },
  };
}
