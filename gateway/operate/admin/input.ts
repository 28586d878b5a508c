/** Returns the schema of the body or the query of a request. @param required names of the required fields */
export function input<const P extends object, const R extends readonly (keyof P & string)[]>(
  properties: P,
  required: R,
) {
  return { type: 'object', properties, required, additionalProperties: false } as const;
}
