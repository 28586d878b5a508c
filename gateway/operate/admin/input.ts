/** Inputs of the admin API: their schemas, and a route that takes one as its body. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { XSchema, XStatic } from 'typebox/schema';

/** A refusal of the admin API. The message tells how to correct the request. */
export class AdminError extends Error {
  readonly statusCode: number;

  constructor(statusCode: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.statusCode = statusCode;
  }
}

/** Returns the schema of the body or the query of a request. @param required names of the required fields */
export function input<const P extends object, const R extends readonly (keyof P & string)[]>(
  properties: P,
  required: R,
) {
  return { type: 'object', properties, required, additionalProperties: false } as const;
}

/** Adds a route that takes a JSON body of this schema. */
export function post<const S extends XSchema>(
  app: FastifyInstance,
  path: string,
  body: S,
  reply: (body: XStatic<S>, request: FastifyRequest) => Promise<object>,
): void {
  app.post(path, { schema: { body } }, (request) => reply(request.body as XStatic<S>, request));
}
