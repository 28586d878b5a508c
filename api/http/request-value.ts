/**
 * Passes a value from a hook to the handler of the same request. A decoration of Fastify would be visible to every
 * route.
 */
import type { FastifyRequest } from 'fastify';

interface RequestValue<T> {
  set(request: FastifyRequest, value: T): void;
  /** @throws Error if the route lacks the hook that sets the value */
  get(request: FastifyRequest): T;
}

export function requestValue<T extends object>(name: string): RequestValue<T> {
  const values = new WeakMap<FastifyRequest, T>();
  return {
    set: (request, value) => void values.set(request, value),
    get(request) {
      const value = values.get(request);
      if (value === undefined) throw new Error(`The hook that finds the ${name} is missing on this route`);
      return value;
    },
  };
}
