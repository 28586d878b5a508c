/** Maximum length of a Unix socket's address in the kernel, without its final zero. */
const PATH_BYTES_MAX = 107;

/** @returns the part after `unix:` of an address; null for an address of another kind */
export function unixPart(address: string): string | null {
  return /^unix:/i.test(address) ? address.slice('unix:'.length) : null;
}

/**
 * @param part an absolute path, or two slashes and then the path; with %-encoding
 * @param example a correct address for the message
 * @throws Error with the mistake
 */
export function parseSocketPath(part: string, example: string): string {
  let path: string;
  try {
    path = decodeURIComponent(part.replace(/^\/\/(?=\/)/, ''));
  } catch (cause) {
    throw new Error(`a % in the path must be written as %25, in an address such as ${example}`, { cause });
  }
  if (!/^\/[^/\0][^\0]*$/.test(path)) throw new Error(`it must have an absolute path, such as ${example}`);
  if (Buffer.byteLength(path) > PATH_BYTES_MAX)
    throw new Error(
      `its path may have at most ${PATH_BYTES_MAX} bytes; choose a shorter one, such as ${example}`,
    );
  return path;
}
