/** The other rows that a survey refers to: languages, action classes and a segment, all of the same workspace. */
import type { Database } from '#api/db/schema.ts';
import { badRequest, invalidFields } from '#api/errors.ts';
import { type ActionClass, actionClasses } from '#api/resources/action-classes/store.ts';
import { languages } from '#api/resources/languages/store.ts';
import { segments } from '#api/resources/segments/store.ts';
import { isRecord } from '#api/values/schemas.ts';
import type { SurveyContent } from './schema.ts';

/** @throws ApiError invalid_fields for a language that the workspace does not have */
export async function checkLanguages(
  db: Database,
  workspaceId: string,
  named: SurveyContent['languages'],
): Promise<void> {
  if (named.length === 0) return;
  const known = new Set((await languages.listAll(db, workspaceId)).map(({ code }) => code));
  const unknown = named.findIndex(({ language }) => !known.has(language));
  if (unknown >= 0) {
    throw invalidFields({
      [`languages.${unknown}.language`]: 'This language does not exist in the workspace',
    });
  }
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
  if (given === null) return [];
  if (!Array.isArray(given)) throw invalidFields({ triggers: 'must be array' });
  const known = given.length === 0 ? [] : await actionClasses.listAll(db, workspaceId);
  const byId = new Map<unknown, ActionClass>(known.map((one) => [one.id, one]));
  const byName = new Map<unknown, ActionClass>(known.map((one) => [one.name, one]));
  const found = given.map((item: unknown, i) => {
    const written = isRecord(item) ? item.actionClass : undefined;
    const { id, name }: Record<string, unknown> = isRecord(written) ? written : { name: written };
    const actionClass = id === undefined ? byName.get(name) : byId.get(id);
    if (actionClass === undefined) {
      throw invalidFields({
        [`triggers.${i}.actionClass`]: 'This action class does not exist in the workspace',
      });
    }
    return actionClass;
  });
  return [...new Set(found)];
}

/** An app survey without a trigger is shown to nobody. @throws ApiError bad_request unless it is a draft */
export function checkTriggers({ type, status }: SurveyContent, triggers: readonly unknown[]): void {
  if (type !== 'app' || status === 'draft' || triggers.length > 0) return;
  throw badRequest('An app survey must have at least one trigger to be set to a non-draft status.', {
    triggers: 'Give at least one trigger, or leave the status at draft',
  });
}

/** Checks the segment; null stays null. @throws ApiError invalid_fields unless the segment belongs to the workspace */
export async function resolveSegmentId(
  db: Database,
  workspaceId: string,
  given: unknown,
): Promise<string | null> {
  if (given === null) return null;
  const segment = typeof given === 'string' ? await segments.find(db, given) : null;
  if (segment?.workspaceId !== workspaceId) {
    throw invalidFields({ segmentId: 'This segment does not exist in the workspace' });
  }
  return segment.id;
}
