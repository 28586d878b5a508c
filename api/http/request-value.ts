/** A value that a hook found for a request and its handler needs, without a decoration that every route would see. */
import type { FastifyRequest } from 'fastify';

interface RequestValue<T> {
  set(request: FastifyRequest, value: T): void;
  /** @throws Error when the hook that fills the slot did not run: a mistake in the route's wiring */
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
