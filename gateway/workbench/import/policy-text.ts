/** Writes imported rows as a policy file. Comments in each row tell its source and the differences. */

import { METHODS } from '#gateway/http/node-http.ts';
import { policyLines, valueText } from '#gateway/policy/file/row-text.ts';
import { LIMIT_MAX } from '#gateway/policy/keys/schema-parts.ts';
import { counted, windowText } from '#gateway/workbench/number-text.ts';
import type { Imported, ImportedExclusion, ImportedRow, Unsupported, Who } from './imported.ts';

/** A policy of the written file. */
interface WrittenPolicy {
  readonly name: string;
  readonly route: string;
  readonly identifier: string;
  readonly limit: number;
  /** Window in the notation of the file. */
  readonly window: string;
  readonly algorithm: 'fixed-window' | 'token-bucket';
  /** Size of the token bucket; null for other algorithms. */
  readonly burst: number | null;
  /** Name of the policy whose counter this policy shares; null if it shares none. */
  readonly bucket: string | null;
  readonly mode: 'enforce' | 'shadow';
  /** FILE:LINE and the text there. */
  readonly source: string;
  readonly notes: readonly string[];
}

export interface PolicyText {
  readonly text: string;
  readonly policies: readonly WrittenPolicy[];
  readonly unsupported: readonly Unsupported[];
  /** Numbers of limits in the source. A limit may have become several policies. */
  readonly limits: { readonly found: number; readonly carriedOver: number; readonly lost: number };
}

const POLICIES_MAX = 1000;
const EXCLUSIONS_MAX = 1000;
const IDENTIFIERS_MAX = 16;
/** A token bucket counts units of a request divided by milliseconds. */
const UNITS_MAX = 2 ** 52;
/** A name may have 64 characters, so this leaves room for a number. */
const NAME_LENGTH = 56;
const FORWARDING: ReadonlySet<string> = new Set([
  'x-forwarded-for',
  'x-real-ip',
  'x-client-ip',
  'true-client-ip',
  'cf-connecting-ip',
  'x-envoy-external-address',
]);
const HEADER = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}$/;
const KNOWN_METHODS: ReadonlySet<string> = new Set(METHODS);

export function policyText(imported: Imported, file: string, product: string): PolicyText {
  const unsupported = withoutDoubles(imported.unsupported);
  const rows = imported.rows.map(withoutForwarding).filter((row) => {
    const reason = reasonAgainst(row);
    if (reason !== null) unsupported.push({ ...row.source, reason });
    return reason === null;
  });
  const identifiers = new Identifiers();
  const names = new Set<string>();
  const groups = new Map<string, string>();
  const policies: WrittenPolicy[] = [];
  const blocks: string[] = [];
  const carried = new Set(imported.exclude.map(({ number }) => number));
  for (const row of rows) {
    const identifier = policies.length < POLICIES_MAX ? identifiers.nameOf(row.who) : null;
    if (identifier === null) {
      const reason =
        policies.length < POLICIES_MAX
          ? `a policy file has at most ${IDENTIFIERS_MAX} identifiers`
          : `a policy file has at most ${POLICIES_MAX} policies`;
      unsupported.push({ ...row.source, reason });
      continue;
    }
    const name = unusedName(row.hint, names);
    // A counter has the name of the first row that uses it.
    const key = keyOfGroup(row, identifier);
    const bucket = row.group === null ? null : (groups.get(key) ?? null);
    if (row.group !== null && bucket === null) groups.set(key, name);
    const policy: WrittenPolicy = {
      name,
      route: `${row.methods === null ? '*' : methodsOf(row.methods).join(',')} ${row.path}`,
      identifier,
      limit: row.limit,
      window: windowText(row.windowSeconds),
      algorithm: row.burst === null ? 'fixed-window' : 'token-bucket',
      burst: row.burst,
      bucket,
      mode: row.mode,
      source: `${file}:${row.source.line}, ${row.source.what}`,
      notes: row.notes,
    };
    policies.push(policy);
    carried.add(row.number);
    blocks.push(block(policy));
  }
  unsupported.sort((a, b) => a.line - b.line);
  const { found } = imported;
  const limits = { found, carriedOver: carried.size, lost: found - carried.size };
  const lines = [
    comment(`${summaryOf(limits)}.`),
    comment(
      `Made of ${file} (${product}) by "floodgate import". "floodgate check" says whether it is right.`,
    ),
    ...(unsupported.length === 0 ? [] : ['#', comment('Not carried over:')]),
    ...unsupported.map(({ line, what, reason }) => comment(`- ${file}:${line}, ${what}: ${reason}`)),
    'version: 1',
    '',
    'identifiers:',
    ...identifiers.lines(),
    ...exclusionLines(imported.exclude, file),
    '',
    policies.length === 0 ? 'policies: []' : 'policies:',
    ...blocks,
  ];
  return { text: `${lines.join('\n')}\n`, policies, unsupported, limits };
}

export function summaryOf({ found, carriedOver, lost }: PolicyText['limits']): string {
  return `${counted(found, 'limit')} found, ${carriedOver} carried over, ${lost} lost`;
}

/** Counts the client address instead of a header that any client may set. */
function withoutForwarding(row: ImportedRow): ImportedRow {
  if (row.who.kind !== 'header' || !FORWARDING.has(row.who.header)) return row;
  const note = `counts the client address in place of ${row.who.header}: set GATEWAY_TRUSTED_PROXIES to the proxies that write it`;
  return { ...row, who: { kind: 'address' }, notes: [...row.notes, note] };
}

function withoutDoubles(all: readonly Unsupported[]): Unsupported[] {
  return [...new Map(all.map((one) => [`${one.line} ${one.what} ${one.reason}`, one])).values()];
}

function reasonAgainst({ methods, limit, burst, windowSeconds, who }: ImportedRow): string | null {
  if (who.kind === 'header' && !HEADER.test(who.header)) return `${who.header} is not the name of a header`;
  if (Math.max(limit, burst ?? 0) > LIMIT_MAX) return `a limit is at most ${LIMIT_MAX}`;
  if (burst !== null && Math.max(limit, burst) * windowSeconds * 1000 > UNITS_MAX)
    return `a token bucket cannot count ${Math.max(limit, burst)} in ${windowSeconds} s`;
  if (methods !== null) {
    const unknown = methods.find((method) => !KNOWN_METHODS.has(method));
    if (unknown !== undefined) return `the method ${unknown} is unknown`;
    if (methods.length === 0) return 'it names no method';
  }
  return null;
}

/** Replaces HEAD by GET, because HEAD counts as GET. */
function methodsOf(methods: readonly string[]): string[] {
  return [...new Set(methods.map((method) => (method === 'HEAD' ? 'GET' : method)))];
}

/** Returns a key that is equal only for rows that can share a counter. */
function keyOfGroup({ group, limit, windowSeconds, burst, mode }: ImportedRow, identifier: string): string {
  return JSON.stringify([group, identifier, limit, windowSeconds, burst, mode]);
}

class Identifiers {
  readonly #byHeader = new Map<string, string>();
  #hasAddress = false;

  /** @returns null if the maximum is reached */
  nameOf(who: Who): string | null {
    if (who.kind === 'everyone') return 'everyone';
    if (who.kind === 'address') {
      this.#hasAddress = true;
      return 'ip';
    }
    const known = this.#byHeader.get(who.header);
    if (known !== undefined) return known;
    if (this.#byHeader.size >= IDENTIFIERS_MAX - 1) return null;
    const taken = new Set(['ip', 'everyone', ...this.#byHeader.values()]);
    const name = unusedName(who.header.replaceAll(/[._]/g, '-'), taken);
    this.#byHeader.set(who.header, name);
    return name;
  }

  lines(): string[] {
    const address = '  ip: { source: client-address, ipv6Prefix: 64 }';
    const headers = [...this.#byHeader].map(
      ([header, name]) => `  ${name}: { source: [{ header: ${valueText(header)} }] }`,
    );
    return this.#hasAddress || headers.length === 0 ? [address, ...headers] : headers;
  }
}

function exclusionLines(exclude: readonly ImportedExclusion[], file: string): string[] {
  const paths = new Set<string>();
  const lines: string[] = [];
  for (const { path, source } of exclude) {
    if (paths.has(path) || paths.size >= EXCLUSIONS_MAX) continue;
    paths.add(path);
    lines.push(
      `  ${comment(`${file}:${source.line}, ${source.what}: no limit`)}`,
      `  - ${valueText(`* ${path}`)}`,
    );
  }
  return lines.length === 0 ? [] : ['', 'exclude:', ...lines];
}

function block({ source, notes, ...row }: WrittenPolicy): string {
  const comments = [source, ...notes].map((text) => `  ${comment(text)}`);
  return [...comments, ...policyLines(row)].join('\n');
}

/** Returns a unique name of valid characters. */
function unusedName(hint: string, taken: Set<string>): string {
  const bare = hint
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, NAME_LENGTH)
    .replace(/-+$/, '');
  const base = bare === '' ? 'limit' : bare;
  let name = base;
  for (let i = 2; taken.has(name); i++) name = `${base}-${i}`;
  taken.add(name);
  return name;
}

/** Returns one line, whatever the text from the other file contains. */
function comment(text: string): string {
  return `# ${text.replaceAll(/\p{C}|\p{Zl}|\p{Zp}|\s+/gu, ' ').slice(0, 500)}`;
}
