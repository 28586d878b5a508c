/** Turns the file name of a caller into one that is safe in addresses. Pure. */

const BASE_LENGTH_MAX = 200;
/** Maximum size in UTF-8. So every key has at most the bytes that a store accepts, also with the longest ids (key.ts). */
const BASE_BYTES_MAX = 600;
/** Maximum number of characters that are cleaned. The rest is dropped anyway. */
const LOOKED_AT_MAX = 1_000;

export interface SafeName {
  /** The cleaned name. Never empty, and never only dots or hyphens. */
  readonly base: string;
  /** The extension as sent, without the dot. */
  readonly extension: string;
}

/** Returns the extension as the caller wrote it; null if there is none. */
export function sentExtension(fileName: string): string | null {
  const name = fileName.trim();
  const extension = name.slice(name.lastIndexOf('.') + 1);
  return extension === name || extension === '' || /[/\\]/.test(extension) ? null : extension;
}

/**
 * Makes a name that every program reads as the same text.
 *
 * @param extension the result of `sentExtension`
 * @returns null when nothing is left of the base
 */
export function cleanName(fileName: string, extension: string): SafeName | null {
  const base = withoutEscapes(
    fileName
      .trim()
      .slice(0, -`.${extension}`.length)
      .slice(0, LOOKED_AT_MAX)
      .normalize('NFC')
      .replace(/[/\\]/g, '-')
      // Whitespace first, because line breaks are control characters too.
      .replace(/\s+/gu, ' ')
      // Control characters and invisible formatting, such as marks that reverse the reading direction.
      .replace(/[#<>:"|?*`'\p{C}]/gu, '')
      // Once more, because a removed character may have kept a letter and its accent apart.
      .normalize('NFC'),
  );
  const trimmed = shortened(base.replace(/ +/g, ' ').trim()).trim();
  return /^(\.*|-*)$/.test(trimmed) ? null : { base: trimmed, extension };
}

/** Returns `{base}--fid--{uuid}.{extension}`. */
export function uniqueName({ base, extension }: SafeName, uuid: string): string {
  return `${base}--fid--${uuid}.${extension}`;
}

/** Returns the name for people, without the part that made it unique. */
export function nameForPeople(fileName: string): string {
  return fileName.replace(/--fid--[0-9a-f-]{36}(?=\.[^.]*$)/, '');
}

/**
 * Drops percent signs that would look like an escape when the name is encoded in an address. Proxies and our gateway
 * refuse addresses that could be decoded twice.
 */
function withoutEscapes(text: string): string {
  const without = text.replace(/%+(?=[0-9A-Fa-f]{2})/g, '');
  // Removing one may form another one: %4%41 would become %441.
  return without === text ? text : withoutEscapes(without);
}

/** Shortens by whole characters, so that none is cut in half. */
function shortened(text: string): string {
  const kept: string[] = [];
  let bytes = 0;
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (kept.length === BASE_LENGTH_MAX || bytes > BASE_BYTES_MAX) break;
    kept.push(character);
  }
  return kept.join('');
}
