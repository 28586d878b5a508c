/** The other rows that a survey refers to: languages, action classes and a segment, all of the same workspace. */
import type { Database } from '#api/db/schema.ts';
import { badRequest, invalidFields } from '#api/errors.ts';
import { type ActionClass, actionClasses } from '#api/resources/action-classes/store.ts';
import { type Language, languages } from '#api/resources/languages/store.ts';
import { segments } from '#api/resources/segments/store.ts';
import { isRecord } from '#api/values/schemas.ts';
import type { SurveyContent } from './schema.ts';

const ITEMS_MAX = 1_000;

export interface SurveyLanguage {
  readonly language: Language;
  readonly default: boolean;
  readonly enabled: boolean;
}

/**
 * @param given `[{language: code | {code, …}, default?, enabled?}]`
 * @throws ApiError invalid_fields
 */
export async function resolveLanguages(
  db: Database,
  workspaceId: string,
  given: unknown,
): Promise<readonly SurveyLanguage[]> {
  const items = arrayAt('languages', given);
  if (items.length === 0) return [];
  const known = await languages.listAll(db, workspaceId);
  const resolved = items.map((item, i): SurveyLanguage => {
    const path = `languages.${i}`;
    if (!isRecord(item)) throw invalidFields({ [path]: 'must be object' });
    const written = isRecord(item.language) ? item.language.code : item.language;
    const language = known.find(({ code }) => code === written);
    if (language === undefined) {
      throw invalidFields({ [`${path}.language`]: 'This language does not exist in the workspace' });
    }
    return {
      language,
      default: flagAt(`${path}.default`, item.default, false),
      enabled: flagAt(`${path}.enabled`, item.enabled, true),
    };
  });
  const codes = resolved.map(({ language }) => language.code);
  const repeated = codes.findIndex((code, i) => codes.indexOf(code) !== i);
  if (repeated >= 0)
    throw invalidFields({ [`languages.${repeated}.language`]: 'This language is listed twice' });
  if (resolved.filter((language) => language.default).length > 1) {
    throw invalidFields({ languages: 'Only one language can be the default' });
  }
  return resolved;
}

/**
 * @param given `[{actionClass: {id} | {name} | "<name>"}]`; duplicates count once
 * @throws ApiError invalid_fields
 */
export async function resolveTriggers(
  db: Database,
  workspaceId: string,
  given: unknown,
): Promise<readonly ActionClass[]> {
  const items = arrayAt('triggers', given);
  if (items.length === 0) return [];
  const known = await actionClasses.listAll(db, workspaceId);
  const found = items.map((item, i) => {
    const written = isRecord(item) ? item.actionClass : undefined;
    const isWritten = isRecord(written)
      ? ({ id, name }: ActionClass) => (written.id === undefined ? name === written.name : id === written.id)
      : ({ name }: ActionClass) => name === written;
    const actionClass = known.find(isWritten);
    if (actionClass === undefined) {
      throw invalidFields({
        [`triggers.${i}.actionClass`]: 'This action class does not exist in the workspace',
      });
    }
    return actionClass;
  });
  return [...new Set(found)];
}

/** The facts that decide whether a survey may leave its draft. */
interface Launched {
  readonly content: Pick<SurveyContent, 'type' | 'status'>;
  readonly triggers: readonly unknown[];
}

/**
 * An app survey without a trigger is shown to nobody, so it may not leave its draft. If it loses its triggers later,
 * because their action class was deleted, it can still be edited and ended.
 *
 * @param before the stored survey; null for a new one
 * @throws ApiError bad_request
 */
export function checkTriggers(before: Launched | null, after: Launched): void {
  if (!lacksTrigger(after)) return;
  const { status } = after.content;
  const wasLacking = before !== null && lacksTrigger(before);
  const isLaunched = status !== before?.content.status && (status === 'inProgress' || status === 'scheduled');
  if (wasLacking && !isLaunched) return;
  throw badRequest('An app survey must have at least one trigger to be set to a non-draft status.', {
    triggers: 'Give at least one trigger, or leave the status at draft',
  });
}

function lacksTrigger({ content, triggers }: Launched): boolean {
  return content.type === 'app' && content.status !== 'draft' && triggers.length === 0;
}

/** Checks the segment; null stays null. @throws ApiError invalid_fields unless the segment belongs to the workspace */
export async function resolveSegmentId(
  db: Database,
  workspaceId: string,
  given: unknown,
): Promise<string | null> {
  if (given === null || given === undefined) return null;
  const segment = typeof given === 'string' ? await segments.find(db, given) : null;
  if (segment?.workspaceId !== workspaceId) {
    throw invalidFields({ segmentId: 'This segment does not exist in the workspace' });
  }
  return segment.id;
}

function arrayAt(path: string, value: unknown): readonly unknown[] {
  if (value === null || value === undefined) return [];
  if (!Array.isArray(value)) throw invalidFields({ [path]: 'must be array' });
  if (value.length > ITEMS_MAX) throw invalidFields({ [path]: `must not have more than ${ITEMS_MAX} items` });
  return value;
}

function flagAt(path: string, value: unknown, fallback: boolean): boolean {
  if (value === undefined) return fallback;
  if (typeof value !== 'boolean') throw invalidFields({ [path]: 'must be boolean' });
  return value;
}
