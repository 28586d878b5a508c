/** Requests that two descriptions have in common. */
import { coveredBy, parseRoute } from '#gateway/policy/route.ts';

export interface RequestSet {
  readonly methods: readonly string[] | null;
  readonly path: string;
}

/** @returns null where they have none in common, or where no single path says it */
export function narrower(a: RequestSet, b: RequestSet): RequestSet | null {
  const methods = commonMethods(a.methods, b.methods);
  const path = isWithin(a.path, b.path) ? a.path : isWithin(b.path, a.path) ? b.path : null;
  return path === null || methods?.length === 0 ? null : { methods, path };
}

/** @param inner, outer paths as a policy file writes them */
export function isWithin(inner: string, outer: string): boolean {
  return coveredBy(parseRoute(`* ${inner}`), [parseRoute(`* ${outer}`)]).length > 0;
}

function commonMethods(a: readonly string[] | null, b: readonly string[] | null): readonly string[] | null {
  if (a === null) return b;
  return b === null ? a : a.filter((method) => b.includes(method));
}
