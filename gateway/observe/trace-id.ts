import { valuesOf } from '#gateway/http/header-fields.ts';

/** Version, trace id, parent id, flags; fields of later versions follow (W3C Trace Context 3.2). */
const VALUE = /^(?!ff)([\da-f]{2})-(?!0+-)([\da-f]{32})-(?!0+-)[\da-f]{16}-[\da-f]{2}(-.*)?$/;

/**
 * Returns the trace id of a valid `traceparent`. null if there is none, or if there are several fields, because then none
 * can be trusted.
 *
 * @param rawHeaders alternating names and values
 */
export function traceIdIn(rawHeaders: readonly string[]): string | null {
  const [value = '', ...others] = valuesOf(rawHeaders, 'traceparent');
  const [, version, traceId, more] = (others.length === 0 && value.match(VALUE)) || [];
  return traceId === undefined || (version === '00' && more !== undefined) ? null : traceId;
}
