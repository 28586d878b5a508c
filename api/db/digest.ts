/** Stands for a text of any length where a database bounds what it takes into an index. */
import { createHash } from 'node:crypto';

/** SHA-256 in base64url. It is stored: another one would need a migration. */
export function digestOfValue(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
