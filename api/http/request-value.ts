/** A value that a hook finds for the handler of the same request, without a decoration that every route would see. */
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
