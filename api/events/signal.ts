/** Wakes the worker of this process. A lost call delays an event, but never loses one. */
export interface Signal {
  notify(): void;
  /** Replaces the listener. @returns a function that removes it */
  listen(listener: () => void): () => void;
}

export function createSignal(): Signal {
  let current: (() => void) | null = null;
  return {
    notify: () => current?.(),
    listen(listener) {
      current = listener;
      return () => {
        if (current === listener) current = null;
      };
    },
  };
}
