/** Conditional requests (RFC 9110 13.1.2). Pure. */

/** @param header If-None-Match @param etag of the current reply, in quotes */
export function matchesEtag(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  const tags = header.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return tags.includes('*') || tags.includes(etag);
}
