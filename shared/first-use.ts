/**
 * Makes a value when it is first asked for, and once, however many ask at the same time. When making it fails, everybody
 * who waits gets the error, and the next one to ask starts a new attempt.
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
