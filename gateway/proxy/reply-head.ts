/**
 * Reads the header section of a reply (RFC 9112). One pass reads what the grammar allows. Only if that fails, the section
 * is repaired if all programs that read it at all read it in the same way, as NGINX or HAProxy do. The client gets the
 * repaired form. `test/gateway/listen/conformance/conformance.md` lists what is repaired and what is refused.
 */
import { fieldsIn } from '#gateway/http/header-fields.ts';
import { HEADER_ADVICE, sizeText } from '#gateway/http/header-size.ts';
import { BadReplyError } from './exchange.ts';
import { badField, repairedField } from './reply-fields.ts';

export interface ReplyHead {
  readonly status: number;
  readonly reason: string;
  readonly isHttp11: boolean;
  /** Alternating names and values. */
  readonly headers: string[];
  /** Whether it obeys the grammar. Otherwise its connection is not used again, because the sender may see its end elsewhere. */
  readonly isStrict: boolean;
  /** Length of its text without the empty line. */
  readonly bytes: number;
  /** Offset behind the empty line. */
  readonly end: number;
}

const CR = 13;
const LF = 10;
const HEAD_END = Buffer.from('\r\n\r\n');
const PROTOCOLS = ['HTTP/1.', 'HTTP/2.0'];
const PROTOCOL_BYTES = 8;
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: ([\t\x20-\x7e\x80-\xff]*))?$/;
/** Scripts that write this line themselves take HTTP/2.0 from a proxy in front; IIS sent 403.1. */
const ODD_STATUS_LINE = /^HTTP\/(1\.\d|2\.0) +([1-9]\d\d)(?:\.\d+)?(?: +([^\0\r\n]*))?$/;
const CONTROLS = /[^\t\x20-\x7e\x80-\xff]/g;
/** Blanks around a folded line (RFC 9112 5.2). */
const AROUND = /^[\t ]+|[\t ]+$/g;

const noStatusLine = (): BadReplyError =>
  new BadReplyError("the upstream's reply has no status line of HTTP/1.1");
const tooLarge = (bytesMax: number): BadReplyError =>
  new BadReplyError(
    `the header section of the upstream's reply is larger than ${sizeText(bytesMax)}; ${HEADER_ADVICE}`,
  );

/**
 * @param from start of the section
 * @param readTo offset to which `bytes` were searched before
 * @returns null if the section is not complete
 */
export function readHead(bytes: Buffer, from: number, readTo: number, bytesMax: number): ReplyHead | null {
  // The last bytes before may have been the start of an empty line.
  const searchFrom = Math.max(from, readTo - HEAD_END.length + 1);
  const end = bytes.indexOf(HEAD_END, searchFrom);
  if (end >= 0 && end - from <= bytesMax) {
    const head = strictHead(bytes.toString('latin1', from, end + 2), end + HEAD_END.length, true);
    if (head !== null) return head;
  }
  const emptyLine = findEmptyLine(bytes, searchFrom);
  if (emptyLine === null) return null;
  if (emptyLine.at - from > bytesMax) throw tooLarge(bytesMax);
  return repairedHead(bytes.toString('latin1', from, emptyLine.at), emptyLine.end);
}

/**
 * Refuses a section that is not complete and that no further bytes can mend, so that the client need not wait.
 *
 * @param checkedTo number of its bytes that were checked before
 */
export function checkBegun(section: Buffer, checkedTo: number, bytesMax: number): void {
  if (section.length > bytesMax) throw tooLarge(bytesMax);
  const start = section.toString('latin1', 0, PROTOCOL_BYTES);
  if (!PROTOCOLS.some((protocol) => protocol.startsWith(start.slice(0, protocol.length))))
    throw noStatusLine();
  const lf = section.lastIndexOf(LF);
  if (lf >= checkedTo) repairedHead(section.toString('latin1', 0, section[lf - 1] === CR ? lf - 1 : lf), 0);
  // A CR that does not end its line.
  const cr = section.indexOf(CR, Math.max(lf + 1, checkedTo - 1));
  if (cr >= 0 && cr < section.length - 1) throw lf < 0 ? noStatusLine() : badField();
}

/** @param text lines that end with CR LF */
function strictHead(text: string, end: number, isStrict: boolean): ReplyHead | null {
  const lineEnd = text.indexOf('\r\n');
  const [, minor, code, reason = ''] = STATUS_LINE.exec(text.slice(0, lineEnd)) ?? [];
  const headers = code === undefined ? null : fieldsIn(text.slice(lineEnd + 2));
  if (headers === null) return null;
  const isHttp11 = minor === '1';
  return { status: Number(code), reason, isHttp11, headers, isStrict, bytes: text.length, end };
}

function repairedHead(text: string, end: number): ReplyHead {
  const [line = '', ...rest] = text.split(/\r?\n/);
  const [, version, code, reason = ''] = ODD_STATUS_LINE.exec(line) ?? [];
  if (code === undefined) throw noStatusLine();
  const fields: string[] = [];
  for (const field of rest) {
    // IIS and some scripts send the line twice.
    if (field === line) continue;
    if (!/^[\t ]/.test(field)) fields.push(field);
    else if (fields.length > 0) fields.push(`${fields.pop()} ${field.replace(AROUND, '')}`);
    else throw badField();
  }
  const repaired = [
    `HTTP/1.${version === '1.0' ? 0 : 1} ${code} ${reason.replace(CONTROLS, ' ')}`,
    ...fields.map(repairedField).filter((field) => field !== null),
  ];
  const head = strictHead(`${repaired.join('\r\n')}\r\n`, end, false);
  if (head === null) throw badField();
  return head;
}

/** Finds the first line that is empty, whether lines end with CR LF or with LF. @returns offsets before and behind it */
function findEmptyLine(bytes: Buffer, from: number): { readonly at: number; readonly end: number } | null {
  for (let lf = bytes.indexOf(LF, from); lf >= 0; lf = bytes.indexOf(LF, lf + 1)) {
    const next = lf + (bytes[lf + 1] === CR ? 2 : 1);
    if (bytes[next] === LF) return { at: bytes[lf - 1] === CR ? lf - 1 : lf, end: next + 1 };
  }
  return null;
}
