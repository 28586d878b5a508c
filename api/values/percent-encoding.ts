/** Decodes percent-encodings. Text with a % that encodes nothing is returned unchanged. */
export function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
