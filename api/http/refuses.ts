/**
 * Errors that routes and hooks declare. `api/docs/refusals.ts` adds what follows from the surface, the
 * method and the schemas.
 */
import type { TSchema } from 'typebox';
import type { Code } from '#api/errors.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The errors of the route's own code, without those of its hooks. A reply with another status fails the tests. */
    readonly refuses?: readonly Code[];
    /** The shape of the body by media type, if the route reads it without `schema.body`. */
    readonly reads?: Readonly<Record<string, TSchema>>;
    /** Whether the route streams its body, so that the limit and the parser for other bodies do not apply. */
    readonly isBodyStreamed?: boolean;
  }
}

const refusalsByHook = new WeakMap<object, readonly Code[]>();

/** Declares the errors of a hook, for every route that has it. @returns the hook */
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
