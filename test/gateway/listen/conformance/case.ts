/** Reads the cases of HTTP/1.1 conformance from `cases.yaml`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { unescaped } from '#test/gateway/exchanges/document.ts';

/** RFC 9110 and RFC 9112 ask this of a server that receives the bytes. The page has the meaning of each. */
export type Demand =
  | 'MUST refuse'
  | 'grammar'
  | 'SHOULD refuse'
  | 'MAY refuse'
  | 'MUST close'
  | 'MUST accept'
  | 'SHOULD accept'
  | 'no switch'
  | 'incomplete'
  | 'application';

interface Written {
  /** The id in the public table of Http11Probe. */
  readonly id: string;
  /** Number and section of the RFC, such as `9112 2.2`. */
  readonly rfc: string;
  readonly demand: Demand;
  /** The property of the request that the case tests. */
  readonly about: string;
  readonly sent: string | readonly string[];
  readonly why?: string;
}

export interface Case extends Written {
  /** The bytes in latin1. Each further part is sent after the reply to the part before. */
  readonly sent: readonly string[];
  /** Why the gateway does not do what the RFC recommends; '' if it does. */
  readonly why: string;
}

export const HOST = 'Host: a.example:8080';

const written: readonly Written[] = parse(readFileSync(join(import.meta.dirname, 'cases.yaml'), 'utf8'));

export const CASES: readonly Case[] = written.map(({ sent, why = '', ...one }) => ({
  ...one,
  sent: [sent].flat().map(unescaped),
  why,
}));
