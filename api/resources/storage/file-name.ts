/** Turns the file name of a caller into one that is safe in addresses. Pure. */
import { extensionOf } from '#api/storage/key.ts';

/** Maximum number of characters, at most 600 bytes. So no key is too long, also with the longest ids (key.ts). */
const BASE_LENGTH_MAX = 150;
/** Maximum number of characters that are cleaned. The rest is dropped anyway. */
const LOOKED_AT_MAX = 1_000;

interface SafeName {
  /** The cleaned name. Never empty, and never only dots or hyphens. */
  readonly base: string;
  /** The extension as sent, without the dot. */
  readonly extension: string;
}

/** Makes a name that every program reads as the same text. @returns null without an extension, or if nothing else is left */
export function cleanName(fileName: string): SafeName | null {
  const extension = extensionOf(fileName.trim());
  if (extension === null) return null;
  const base = fileName
    .trim()
    .slice(0, -`.${extension}`.length)
    .slice(0, LOOKED_AT_MAX)
    .normalize('NFC')
    .replace(/[/\\]/g, '-')
    // Whitespace first, because line breaks are control characters too.
    .replace(/\s+/gu, ' ')
    // Control characters and invisible formatting, such as marks that reverse the reading direction; and percent signs,
    // because proxies and our gateway refuse addresses that could be decoded twice.
    .replace(/[#<>:"|?*`'%\p{C}]/gu, '')
    // Once more, because a removed character may have kept a letter and its accent apart.
    .normalize('NFC')
    .replace(/ +/g, ' ')
    .trim();
  // Whole characters, so that none is cut in half.
  const short = [...base].slice(0, BASE_LENGTH_MAX).join('').trim();
  return /^(\.*|-*)$/.test(short) ? null : { base: short, extension };
}

/** Returns `{base}--fid--{uuid}.{extension}`. */
export function uniqueName({ base, extension }: SafeName, uuid: string): string {
  return `${base}--fid--${uuid}.${extension}`;
}

/** Returns the name for people, without the part that made it unique. */
export function nameForPeople(fileName: string): string {
  return fileName.replace(/--fid--[0-9a-f-]{36}(?=\.[^.]*$)/, '');
}
