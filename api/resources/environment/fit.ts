/**
 * Leaves out of a state what would make it too large. The limits of surveys and action classes prevent this, but for
 * databases that are older than these limits, and for texts that take much more room in the state. Pure.
 */

import type { Survey } from '#api/resources/surveys/store.ts';
import { ACTION_CLASSES_BYTES_MAX, STATE_BYTES_MAX } from '#api/values/content-limits.ts';
import { type StateParts, toState } from './state.ts';

/** @returns the items whose sizes together are at most `bytesMax`; each one that does not fit is left out */
export function fitting<T>(
  items: readonly T[],
  bytesMax: number,
  bytesOf: (item: T) => number,
): readonly T[] {
  let left = bytesMax;
  return items.filter((item) => {
    const bytes = bytesOf(item);
    if (bytes > left) return false;
    left -= bytes;
    return true;
  });
}

/** @returns the state as JSON, and the ids of what is left out of it */
export function toFittingState(parts: StateParts): {
  readonly json: string;
  readonly leftOut: readonly string[];
} {
  const actionClasses = fitting(parts.actionClasses, ACTION_CLASSES_BYTES_MAX, ({ noCodeConfig }) =>
    bytesIn(JSON.stringify(noCodeConfig)),
  );
  const jsonOf = (surveys: readonly Survey[]): string =>
    JSON.stringify(toState({ ...parts, actionClasses, surveys }));
  const whole = jsonOf(parts.surveys);
  const surveys =
    bytesIn(whole) <= STATE_BYTES_MAX
      ? parts.surveys
      : fitting(parts.surveys, STATE_BYTES_MAX - bytesIn(jsonOf([])), (survey) =>
          bytesIn(JSON.stringify(toState({ ...parts, actionClasses: [], surveys: [survey] }))),
        );
  const shown = new Set([...surveys, ...actionClasses].map(({ id }) => id));
  return {
    json: surveys === parts.surveys ? whole : jsonOf(surveys),
    leftOut: [...parts.surveys, ...parts.actionClasses].flatMap(({ id }) => (shown.has(id) ? [] : [id])),
  };
}

function bytesIn(text: string): number {
  return Buffer.byteLength(text);
}
