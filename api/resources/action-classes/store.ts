/** Action classes: events in an app that may trigger a survey. */
import type { ActionClassTable, Decoded } from '#api/db/schema.ts';
import { workspaceTable } from '#api/resources/workspaces/table.ts';
import { ACTION_CLASSES_BYTES_MAX } from '#api/values/content-limits.ts';

export type ActionClass = Decoded<ActionClassTable, { noCodeConfig: unknown }>;

export const actionClasses = workspaceTable<ActionClass>('actionClasses', {
  json: ['noCodeConfig'],
  // SDKs download them all.
  limit: { max: 500, noun: 'action classes', size: { of: 'noCodeConfig', bytes: ACTION_CLASSES_BYTES_MAX } },
});
