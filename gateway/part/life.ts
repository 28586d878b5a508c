import type { Millis } from '#shared/clock.ts';
import type { Sample } from './sample.ts';

/** Something that runs from the start of a process to its end: a piece of the core, or an optional part. */
export interface Life<Core = void> {
  /** Opens listeners, or begins to watch files. */
  start?(core: Core): void | Promise<void>;
  /** SIGHUP was received. */
  reload?(): void;
  samples?(): Sample[];
  /** Lets requests in flight finish, until the deadline. */
  drain?(deadlineMs: Millis): Promise<void>;
  close?(): void | Promise<void>;
}

/** Several lives that act as one. */
export interface Lives<Core = void> extends Required<Life<Core>> {
  start(core: Core): Promise<void>;
  close(): Promise<void>;
}

/** Makes several lives one. They start in the order of the list, and are closed in the other direction. */
export function together<Core = void>(lives: readonly Life<Core>[]): Lives<Core> {
  return {
    async start(core) {
      for (const life of lives) await life.start?.(core);
    },
    reload() {
      for (const life of lives) life.reload?.();
    },
    samples: () => lives.flatMap((life) => life.samples?.() ?? []),
    async drain(deadlineMs) {
      await Promise.all(lives.map((life) => life.drain?.(deadlineMs)));
    },
    async close() {
      for (const life of lives.toReversed()) await life.close?.();
    },
  };
}

/** Closes everything if it cannot start. @throws the reason */
export async function startOrClose(life: Lives): Promise<void> {
  try {
    await life.start();
  } catch (error) {
    await life.drain(0);
    await life.close();
    throw error;
  }
}
