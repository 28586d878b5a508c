/**
 * Requests that were really sent and the replies that really came. `test/api/docs/openapi.test.ts` records them, and
 * holds each to the schema that it is shown with.
 */
import { readFileSync } from 'node:fs';
import { isRecord } from '#api/schemas.ts';

export interface Example {
  readonly request?: unknown;
  readonly reply: unknown;
}

const recorded: unknown = JSON.parse(readFileSync(new URL('./examples.json', import.meta.url), 'utf8'));

/** @param path as OpenAPI writes it */
export function exampleOf(method: string, path: string): Example | null {
  const example = isRecord(recorded) ? recorded[`${method} ${path}`] : undefined;
  return isRecord(example) ? { reply: example.reply, request: example.request } : null;
}
