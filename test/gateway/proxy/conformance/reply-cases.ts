/** Reads `reply-cases.yaml`, which says what its words mean. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

export type OfNginx = 'reads' | 'refuses' | 'waits' | 'as HTTP/0.9';

export interface ReplyCase {
  /** The special part of the reply, in words. */
  readonly about: string;
  /** Number and section of the RFC, such as `9112 2.2`. */
  readonly rfc: string;
  readonly demand: 'read' | 'refuse' | 'break';
  readonly nginx: OfNginx;
  /** The bytes in latin1. */
  readonly sent: string;
  /** Whether the application closes the connection behind them. */
  readonly closes?: true;
}

/** The cases by the title of their group. */
export const REPLY_GROUPS: Readonly<Record<string, readonly ReplyCase[]>> = parse(
  readFileSync(join(import.meta.dirname, 'reply-cases.yaml'), 'utf8'),
);

export const REPLY_CASES: readonly ReplyCase[] = Object.values(REPLY_GROUPS).flat();
