/** Serializes replies by their schemas. */
import { createRequire } from 'node:module';
import type { FastifySerializerCompiler } from 'fastify';

type Serializer = ReturnType<FastifySerializerCompiler<unknown>>;

const require = createRequire(import.meta.url);
type Compile = ReturnType<
  ReturnType<typeof import('@fastify/fast-json-stringify-compiler').SerializerSelector>
>;
let compile: Compile | null = null;

/** Loads the library with the first schema. Fastify cannot wait for a promise here, so import() is not possible. */
function compiler(): Compile {
  if (compile !== null) return compile;
  const { SerializerSelector } =
    require('@fastify/fast-json-stringify-compiler') as typeof import('@fastify/fast-json-stringify-compiler');
  compile = SerializerSelector()();
  return compile;
}

const compiled = new WeakMap<object, Serializer>();

/**
 * Compiles a schema with the first reply that needs it. There are hundreds, at a few milliseconds each, which would be
 * most of the start.
 */
export const serializerCompiler: FastifySerializerCompiler<object> = (route) => (data) => {
  const { schema } = route;
  const known = compiled.get(schema);
  if (known !== undefined) return known(data);
  const serializer: Serializer = compiler()({ ...route, httpStatus: route.httpStatus ?? '' });
  compiled.set(schema, serializer);
  return serializer(data);
};
