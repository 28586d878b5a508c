/** Tells the worker of this process that there is something to do. Losing a call loses time, never an event. */
export interface Signal {
  notify(): void;
  /** One listener at a time; the newest one counts. @returns ends it */
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
