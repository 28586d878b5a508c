/** The origin of the page that sent a request, which browsers put into the header field Origin. */
import { valuesOf } from './header-fields.ts';

/** Returns the origin of a request; null if it has none, or several. @param rawHeaders alternating names and values */
export function originIn(rawHeaders: readonly string[]): string | null {
  const [origin = null, ...others] = valuesOf(rawHeaders, 'origin');
  return others.length === 0 ? origin : null;
}

const LINE = /\norigin:([^\r\n]*)(?=\r?\n)/gi;

/** Returns the origin in bytes that could not be read as a request; null if they have none, or several. */
export function originAmong(bytes: Uint8Array): string | null {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
  const end = text.indexOf('\r\n\r\n');
  const found = [...(end < 0 ? text : text.slice(0, end + 2)).matchAll(LINE)];
  return found.length === 1 ? (found[0]?.[1]?.trim() ?? null) : null;
}
