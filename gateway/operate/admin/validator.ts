/** Holds bodies of the admin API to their schemas, read as they are: nothing is compiled for what is rarely called. */
import type { FastifySchemaCompiler } from 'fastify';
import { Errors, type XSchema } from 'typebox/schema';

/** What is not in a schema is a mistake, and is said rather than dropped. The first finding speaks for all. */
export const validatorCompiler: FastifySchemaCompiler<XSchema> =
  ({ schema, httpPart = 'request' }) =>
  (value: unknown) => {
    const [valid, findings] = Errors(schema, value);
    if (valid) return { value };
    // An unknown field has a finding of its own, "schema is false", before the one that names it.
    const finding = findings.find(({ keyword }) => keyword !== 'boolean');
    const { instancePath, message } = finding ?? { instancePath: '', message: 'is not what the schema says' };
    const unknown = finding?.keyword === 'additionalProperties' ? finding.params.additionalProperties : [];
    const names = unknown.length > 0 ? `: ${unknown.join(', ')}` : '';
    return { error: new Error(`${httpPart}${instancePath} ${message}${names}`) };
  };
