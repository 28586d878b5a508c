/** Our own files are stored as paths, and returned as addresses. */
import { isRecord } from './schemas.ts';

/** Turns `/storage/…` into `https://host/storage/…`, in every text that is such a path. */
export function withAbsoluteFiles(value: unknown, publicUrl: string): unknown {
  if (typeof value === 'string') return value.startsWith('/storage/') ? publicUrl + value : value;
  if (Array.isArray(value)) return value.map((item) => withAbsoluteFiles(item, publicUrl));
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, child]) => [key, withAbsoluteFiles(child, publicUrl)]),
  );
}
