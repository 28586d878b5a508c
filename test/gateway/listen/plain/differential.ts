/**
 * Compares the gateway's own parser with node:http, both in this process. node:http accepts everything that the own
 * parser accepts, with the same method, target, fields and body. Other requests reach node:http byte for byte.
 */
import { plainHead } from '#gateway/listen/plain/plain-request.ts';
import { type Dice, dice } from '#test/support/seed.ts';
import type { Readers, Reading, ReadRequest, ReplyAt } from './readers.ts';
import { mutated, requestText } from './request-texts.ts';

export interface Difference {
  readonly seed: number;
  readonly what: string;
  readonly text: string;
  readonly own: Reading;
  readonly node: Reading;
}

const REPLY_AT: readonly ReplyAt[] = ['head', 'end', 'later'];
/** Number of connections that are read at the same time. */
const AT_ONCE = 200;

interface Totals {
  cases: number;
  /** Number of cases whose first request the own parser accepted. */
  plain: number;
  differences: Difference[];
}

/** Runs one case for each seed after `from`. It stops at the first differences. */
export async function compare(readers: Readers, from: number, count: number): Promise<Totals> {
  const totals: Totals = { cases: 0, plain: 0, differences: [] };
  for (let seed = from; seed < from + count && totals.differences.length === 0; seed += AT_ONCE) {
    const cases: Promise<Difference | null>[] = [];
    for (let i = 0; i < AT_ONCE && seed + i < from + count; i++) {
      totals.cases++;
      const found = compareOne(readers, seed + i);
      if (found === null) continue;
      totals.plain++;
      cases.push(found);
    }
    for (const difference of await Promise.all(cases))
      if (difference !== null) totals.differences.push(difference);
  }
  return totals;
}

/** @returns null if the own parser does not accept the first request, so that node:http reads everything */
function compareOne(readers: Readers, seed: number): Promise<Difference | null> | null {
  const roll = dice(seed);
  const text = caseText(roll);
  const bytes = Buffer.from(text, 'latin1');
  return plainHead(bytes) === null ? null : comparedWith(readers, seed, bytes, roll);
}

function caseText(roll: Dice): string {
  const oddity = roll(2) === 0 ? 8 : 40;
  let text = '';
  for (let n = roll(8) === 0 ? 1 + roll(4) : 1; n > 0; n--) text += requestText(roll, oddity);
  return mutated(text, roll);
}

/**
 * Bytes beyond ASCII in a target. The own parser encodes them and node:http refuses the request, on purpose: the
 * conformance cases and the page about what does not work hold both. The line may follow a body without a line end.
 */
const BEYOND_ASCII_TARGET = /[A-Z-]+ [^ \r\n]*[\x80-\xff][^ \r\n]* HTTP\/1\.[01]\r?$/m;

async function comparedWith(
  readers: Readers,
  seed: number,
  bytes: Buffer,
  roll: Dice,
): Promise<Difference | null> {
  const cuts: number[] = [];
  for (let n = roll(3); n > 0; n--) cuts.push(roll(bytes.length));
  cuts.sort((a, b) => a - b);
  const replyAt = REPLY_AT[roll(REPLY_AT.length)] ?? 'head';
  const isSlow = roll(2) === 0;
  const [own, node] = await Promise.all([
    readers.read(bytes, cuts, 'own', replyAt, isSlow),
    readers.read(bytes, cuts, 'node', replyAt, isSlow),
  ]);
  const text = bytes.toString('latin1');
  if (BEYOND_ASCII_TARGET.test(text)) return null;
  const what = differenceOf(bytes, own, node);
  return what === null ? null : { seed, what, text, own, node };
}

/** @returns the differences; null if there are none that matter */
export function differenceOf(bytes: Buffer, own: Reading, node: Reading): string | null {
  if (own.plain > node.requests.length) return 'node:http does not accept the request';
  for (const [i, request] of own.requests.entries()) {
    const other = node.requests[i];
    if (other !== undefined && !isSameRequest(request, other)) return `request ${i}`;
  }
  if (own.replied.some((number, i) => number <= (own.replied[i - 1] ?? -1)))
    return 'the order of the replies';
  if (
    own.handedOver !== null &&
    !isRest(own.handedOver, bytes.toString('latin1'), lengthOf(bytes, own.plain))
  )
    return 'the bytes that were handed over';
  // A connection that closes, or a 400, may come before or after the next request is read.
  if (own.isClosed || node.isClosed)
    return own.isClosed === node.isClosed ? null : 'the end of the connection';
  const outcome = ({ requests, replied, statuses }: Reading): string =>
    JSON.stringify({ requests, replied, statuses });
  return outcome(own) === outcome(node) ? null : 'the outcome';
}

/** Behind a body, an empty line that arrives alone is dropped. */
function isRest(handedOver: string, text: string, at: number): boolean {
  return (
    text.startsWith(handedOver, at) || (text.startsWith('\r\n', at) && text.startsWith(handedOver, at + 2))
  );
}

function isSameRequest(own: ReadRequest, node: ReadRequest): boolean {
  const head = ({ method, target, fields }: ReadRequest): string =>
    JSON.stringify({ method, target, fields });
  if (head(own) !== head(node)) return false;
  if (own.isComplete && node.isComplete) return own.body === node.body;
  // The connection was closed while the body was being read.
  return own.body.startsWith(node.body) || node.body.startsWith(own.body);
}

/** @returns the length of the first `count` plain requests */
function lengthOf(bytes: Buffer, count: number): number {
  let at = 0;
  for (let n = 0; n < count; n++) {
    const head = plainHead(bytes.subarray(at));
    at += (head?.bytes ?? 0) + (head?.contentLength ?? 0);
  }
  return at;
}
