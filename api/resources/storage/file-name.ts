/** Names of uploaded files: from what a caller sends to what stands in an address. Pure. */

const BASE_LENGTH_MAX = 200;
/** What lies beyond cannot matter, and is not worth the work of cleaning it. */
const LOOKED_AT_MAX = 1_000;

export interface SafeName {
  /** Cleaned; never empty, and never only dots or hyphens. */
  readonly base: string;
  /** As it was sent, without the dot. */
  readonly extension: string;
}

/** The extension as the caller wrote it; null when there is none. */
export function sentExtension(fileName: string): string | null {
  const name = fileName.trim();
  const extension = name.slice(name.lastIndexOf('.') + 1);
  return extension === name || extension === '' || /[/\\]/.test(extension) ? null : extension;
}

/**
 * Makes a name that is the same text to every program it will pass through.
 *
 * @param extension what `sentExtension` found in it
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
      // Whitespace first: line breaks are control characters too.
      .replace(/\s+/gu, ' ')
      // Controls and invisible formatting, such as marks that reverse the reading direction.
      .replace(/[#<>:"|?*`'\p{C}]/gu, ''),
  );
  const trimmed = shortened(base.replace(/ +/g, ' ').trim()).trim();
  return /^(\.*|-*)$/.test(trimmed) ? null : { base: trimmed, extension };
}

/** `{base}--fid--{uuid}.{extension}` */
export function uniqueName({ base, extension }: SafeName, uuid: string): string {
  return `${base}--fid--${uuid}.${extension}`;
}

/** The name as a person knows it, without the part that made it unique. */
export function nameForPeople(fileName: string): string {
  return fileName.replace(/--fid--[0-9a-f-]{36}(?=\.[^.]*$)/, '');
}

/**
 * Drops percent signs that would look like an escape once the name stands encoded in an address: proxies, our gateway
 * among them, refuse what could be decoded twice.
 */
function withoutEscapes(text: string): string {
  const without = text.replace(/%+(?=[0-9A-Fa-f]{2})/g, '');
  // What stood behind the one that went may now stand behind another: %4%41 would become %441.
  return without === text ? text : withoutEscapes(without);
}

/** Counts characters as people do, so that none is cut in half. */
function shortened(text: string): string {
  const characters = [...text];
  return characters.length <= BASE_LENGTH_MAX ? text : characters.slice(0, BASE_LENGTH_MAX).join('');
}
