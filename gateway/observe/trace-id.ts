const NAME = 'traceparent';
/** Version, trace id, parent id, flags; fields of later versions follow (W3C Trace Context 3.2). */
const VALUE = /^(?!ff)([\da-f]{2})-(?!0+-)([\da-f]{32})-(?!0+-)[\da-f]{16}-[\da-f]{2}(-.*)?$/;

/**
 * Returns the trace id of a valid `traceparent`. null if there is none, or if there are several fields, because then none
 * can be trusted.
 *
 * @param rawHeaders alternating names and values
 */
export function traceIdIn(rawHeaders: readonly string[]): string | null {
  let value: string | null = null;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (name.length !== NAME.length || name.toLowerCase() !== NAME) continue;
    if (value !== null) return null;
    value = rawHeaders[i + 1] ?? '';
  }
  const [, version, traceId, more] = value?.match(VALUE) ?? [];
  return traceId === undefined || (version === '00' && more !== undefined) ? null : traceId;
}
