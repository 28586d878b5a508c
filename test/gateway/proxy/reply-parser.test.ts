/** Runs the cases of replies.md whole, split at every position, and byte by byte. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { BrokenReplyError } from '#gateway/proxy/exchange.ts';
import { ReplyParser } from '#gateway/proxy/reply-parser.ts';
import { unescaped } from '#test/gateway/exchanges/document.ts';

interface Case {
  readonly name: string;
  readonly bytes: Buffer;
  readonly closes: boolean;
  readonly method: string;
  /** Protocol that the request asked for; null if none. */
  readonly upgrade?: string | null;
  readonly log: readonly string[];
}

const CASE =
  /### (?<name>.+)\n\n```http(?<options>[ a-z]*)\n(?<sent>[^`]*)```\n\n```log\n(?<log>[^`]+)```\n/g;

function readCases(): Case[] {
  const text = readFileSync(join(import.meta.dirname, 'replies.md'), 'utf8');
  return [...text.matchAll(CASE)].map(({ groups = {} }) => {
    const { name = '', options = '', sent = '', log = '' } = groups;
    return {
      name,
      bytes: Buffer.from(unescaped(sent.replace(/\n$/, '').replaceAll('\n', '\r\n')), 'latin1'),
      closes: options.includes('closes'),
      method: options.includes('head') ? 'HEAD' : 'GET',
      upgrade: options.includes('upgrade') ? 'websocket' : null,
      log: log.trimEnd().split('\n').map(unescapedLine),
    };
  });
}

/** Bodies are shown as JSON, which has no \x. */
const unescapedLine = (line: string): string => (line.startsWith('body ') ? line : unescaped(line));

/** @param cuts positions at which the bytes are split */
function logOf({ bytes, closes, method, upgrade = null }: Case, cuts: readonly number[]): string[] {
  const log: string[] = [];
  let body = '';
  const flush = (): void => {
    if (body !== '') log.push(`body ${JSON.stringify(body)}`);
    body = '';
  };
  let isOver = false;
  const parser = new ReplyParser(16_384, {
    onInterim(status, reason, headers) {
      log.push(`interim ${status} "${reason}" ${JSON.stringify(headers)}`);
    },
    onHead(status, reason, headers) {
      log.push(`${status} "${reason}"`);
      for (let i = 0; i < headers.length; i += 2) log.push(`${headers[i]}: ${headers[i + 1]}`);
    },
    onPiece(piece) {
      body += piece.toString('latin1');
    },
    onSwitch(headers, early) {
      isOver = true;
      log.push(`switched ${JSON.stringify(headers)}`, `early ${JSON.stringify(early.toString('latin1'))}`);
    },
    onReplyEnd() {
      flush();
      isOver = true;
      log.push(`end, connection ${parser.isReusable ? 'kept' : 'closed'}`);
    },
  });
  parser.begin(method, upgrade);
  try {
    let from = 0;
    for (const to of [...cuts, bytes.length]) {
      // The parser may move bytes within its input, so it gets a copy.
      if (to > from && !isOver) parser.read(Buffer.from(bytes.subarray(from, to)));
      from = to;
    }
    if (closes) parser.finish();
  } catch (error) {
    flush();
    const code =
      error instanceof BrokenReplyError && error.code === 'UPSTREAM_CLOSED' ? ` (${error.code})` : '';
    const begun = closes && parser.hasBegunHead ? ', in a header section' : '';
    log.push(`error ${(error as Error).message}${code}${begun}`);
  }
  return log;
}

/**
 * Removes events after the end of the reply. The connection then closes the socket, so it may have read more or less.
 */
const withoutFate = (log: readonly string[]): string[] =>
  log.map((line) => line.replace(/^end, connection .*/, 'end'));

const cases = readCases();

t.test('the document has all cases', async (t) => {
  const text = readFileSync(join(import.meta.dirname, 'replies.md'), 'utf8');
  t.equal(cases.length, text.match(/^### /gm)?.length);
  t.ok(cases.length > 30);
});

for (const one of cases) {
  t.test(one.name, async (t) => {
    t.strictSame(logOf(one, []), one.log);
    const isCutOff = one.log.some((line) => line === 'end, connection closed');
    const expected = isCutOff ? withoutFate(one.log) : one.log;
    const seen = (cuts: readonly number[]): readonly string[] =>
      isCutOff ? withoutFate(logOf(one, cuts)) : logOf(one, cuts);
    const wrong: number[] = [];
    for (let cut = 1; cut < one.bytes.length; cut++)
      if (JSON.stringify(seen([cut])) !== JSON.stringify(expected)) wrong.push(cut);
    t.strictSame(wrong, [], 'split into two pieces');
    const everywhere = Array.from({ length: one.bytes.length }, (_, i) => i);
    t.strictSame(seen(everywhere), expected, 'byte by byte');
  });
}

t.test('accepts a header section of 16 KiB, and refuses a larger one at once', async (t) => {
  const head = (bytes: number): Buffer => {
    const start = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: ';
    return Buffer.from(`${start}${'x'.repeat(bytes - start.length)}\r\n\r\n`);
  };
  const read = (bytes: Buffer): string[] =>
    logOf({ name: '', bytes, closes: false, method: 'GET', log: [] }, [1000, 9000]);
  t.equal(read(head(16_384)).at(-1), 'end, connection kept');
  t.match(read(head(16_385)).at(-1), /larger than 16 KiB/);
  t.match(read(head(40_000).subarray(0, 20_000)).at(-1), /larger than 16 KiB/, 'before its end arrives');
});

t.test('bounds interim replies, chunk extensions and trailers', async (t) => {
  const last = (text: string): string | undefined =>
    logOf({ name: '', bytes: Buffer.from(text), closes: false, method: 'GET', log: [] }, []).at(-1);
  t.match(last('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(33)), /too many interim replies/);
  const large = `HTTP/1.1 103 Early Hints\r\nX: ${'x'.repeat(16_000)}\r\n\r\n`;
  t.match(last(large.repeat(4)), /^interim 103/);
  t.match(last(large.repeat(5)), /too many interim replies/);
  const repaired = last(`${large}HTTP/1.1 200 OK\nContent-Length: 0\n\n`);
  t.equal(repaired, 'end, connection closed', 'each header section has its own bound');
  const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
  t.match(last(`${chunked}1;${'x'.repeat(1024)}`), /too much between its chunks/);
  t.match(last(`${chunked}0\r\n${'X: y\r\n'.repeat(3000)}`), /too much between its chunks/);
});
