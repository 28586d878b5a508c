import { SerializerSelector } from '@fastify/fast-json-stringify-compiler';
import t from 'tap';
import { startApi } from '#test/support/api-app.ts';
import type { Json } from '#test/support/json.ts';

t.test('every reply schema can be compiled, although a start compiles none', async (t) => {
  const api = await startApi(t);
  const { paths, components } = (await api.client('GET', '/api/docs/openapi.json')).json;
  const compile = SerializerSelector()();
  const broken: string[] = [];
  let count = 0;
  for (const [url, methods] of Object.entries<Json>(paths)) {
    for (const [method, operation] of Object.entries<Json>(methods)) {
      for (const [httpStatus, reply] of Object.entries<Json>(operation.responses ?? {})) {
        const schema = reply.content?.['application/json']?.schema;
        // Errors are described there, but one function writes them.
        if (schema === undefined || '$ref' in schema) continue;
        count += 1;
        try {
          compile({ method, url, httpStatus, schema: { ...schema, components } });
        } catch (error) {
          broken.push(`${method} ${url} ${httpStatus}: ${error}`);
        }
      }
    }
  }
  t.same(broken, []);
  t.ok(count > 100, `found ${count}`);
});
