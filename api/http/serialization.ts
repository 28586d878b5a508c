/** What Fastify calls for the schema of every reply. */
import { SerializerSelector } from '@fastify/fast-json-stringify-compiler';
import type { FastifySerializerCompiler } from 'fastify';

type Serializer = ReturnType<FastifySerializerCompiler<unknown>>;

const compile = SerializerSelector()();
const compiled = new WeakMap<object, Serializer>();

/**
 * Compiles a schema with the first reply that needs it. There are hundreds, a few milliseconds each: a program that
 * compiled all of them before it listens would spend most of its start on them.
 */
export const serializerCompiler: FastifySerializerCompiler<object> = (route) => (data) => {
  const { schema } = route;
  const known = compiled.get(schema);
  if (known !== undefined) return known(data);
  const serializer: Serializer = compile({ ...route, httpStatus: route.httpStatus ?? '' });
  compiled.set(schema, serializer);
  return serializer(data);
};
