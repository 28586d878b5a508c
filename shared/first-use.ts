/**
 * Creates a value on first use. Concurrent callers share one attempt. If it fails, all of them get the error, and the
 * next call tries again.
 */
export function onFirstUse<T>(make: () => Promise<T>): () => Promise<T> {
  let value: Promise<T> | null = null;
  return () => {
    if (value === null) {
      value = make();
      value.catch(() => {
        value = null;
      });
    }
    return value;
  };
}
