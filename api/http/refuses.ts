/**
 * What a route says of itself beyond its schemas. What follows from its surface, its method and its schemas is added by
 * `api/surfaces/refusals.ts`.
 */
import type { TSchema } from 'typebox';
import type { Code } from '#api/errors.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the route's own code refuses, beside its hooks. A reply with another status fails the tests. */
    readonly refuses?: readonly Code[];
    /** The body's shape by media type, where the route reads it by hand instead of by `schema.body`. */
    readonly reads?: Readonly<Record<string, TSchema>>;
    /** The route reads its body piece by piece, so the limit and the parser of other bodies do not apply. */
    readonly isBodyStreamed?: boolean;
  }
}

const refusalsByHook = new WeakMap<object, readonly Code[]>();

/** Notes what a hook may refuse, for every route that has it. @returns the hook */
export function refusing<Hook extends object>(hook: Hook, ...codes: readonly Code[]): Hook {
  refusalsByHook.set(hook, codes);
  return hook;
}

/** @param hooks of one stage of a route: none, one or several */
export function refusalsOfHooks(hooks: unknown): readonly Code[] {
  return [hooks]
    .flat()
    .flatMap((hook) => (typeof hook === 'function' ? (refusalsByHook.get(hook) ?? []) : []));
}
