/**
 * Formats the start of a message (RFC 9112 2.1), without the empty line.
 *
 * @param headers alternating names and values
 */
export function headText(startLine: string, headers: readonly string[]): string {
  let text = `${startLine}\r\n`;
  for (let i = 0; i < headers.length; i += 2) text += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return text;
}
