/** Deletes many rows a few at a time, so that neither requests nor other writers wait for all of them. */
import { setImmediate } from 'node:timers/promises';

/** Rows of one statement: about 10 ms with the indexes of a million responses. */
export const SLICE_ROWS = 200;

/** @param deleteSlice deletes at most so many rows @returns when a slice found fewer, or it is told to stop */
export async function inSlices(
  deleteSlice: (rowsMax: number) => Promise<number>,
  isStopping: () => boolean = () => false,
): Promise<void> {
  while (!isStopping() && (await deleteSlice(SLICE_ROWS)) === SLICE_ROWS) await setImmediate();
}
