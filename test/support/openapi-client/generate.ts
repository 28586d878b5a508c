/** Types of a client, as `npx openapi-typescript` writes them. Stands here because the generator is installed here. */
import openapiTypescript, { astToString } from 'openapi-typescript';

/** @param document an OpenAPI document @returns TypeScript with the types `paths` and `components` */
export async function clientTypes(document: string): Promise<string> {
  return astToString(await openapiTypescript(document));
}
