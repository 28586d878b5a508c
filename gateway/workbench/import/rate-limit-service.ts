/**
 * envoyproxy/ratelimit: descriptors, whose entries mean what the actions of Envoy make of a request. Those that this file
 * itself explains are read: the address, a header, and a path or a method that stands as a value.
 */
import {
  ImportError,
  type Imported,
  type ImportedExclusion,
  type ImportedRow,
  PLAIN_ROW,
  SECONDS_OF,
  type Unsupported,
  type Who,
} from './imported.ts';
import { exactPattern, prefixPattern } from './path-pattern.ts';
import type { Tree } from './tree.ts';

/** The conditions of all descriptors from the outermost to this one. */
interface Described {
  readonly what: readonly string[];
  readonly who: readonly Who[];
  readonly methods: readonly string[] | null;
  readonly path: string;
  readonly hint: string;
  readonly notes: readonly string[];
}

const EVERYTHING: Described = { what: [], who: [], methods: null, path: '*', hint: 'all', notes: [] };
const DEPTH_MAX = 16;

/** @throws ImportError when there are no descriptors in it */
export function importRateLimitService(documents: readonly Tree[]): Imported {
  const reading = new Reading();
  for (const document of documents) {
    const descriptors = document.at('descriptors');
    if (!Array.isArray(descriptors.value))
      throw new ImportError(
        `line ${descriptors.line}: descriptors is no list; give it a file of envoyproxy/ratelimit`,
      );
    for (const descriptor of descriptors.items()) reading.descriptor(descriptor, EVERYTHING, 0);
  }
  return reading;
}

class Reading implements Imported {
  readonly rows: ImportedRow[] = [];
  readonly exclude: ImportedExclusion[] = [];
  readonly unsupported: Unsupported[] = [];

  descriptor(descriptor: Tree, outer: Described, depth: number): void {
    const key = descriptor.at('key').text ?? '';
    const value = descriptor.at('value').text;
    const what = [...outer.what, value === null ? key : `${key}=${value}`];
    const described = depth > DEPTH_MAX ? 'descriptors are nested too deeply' : withEntry(outer, key, value);
    if (typeof described === 'string') {
      this.#refuse(descriptor, what, described);
      return;
    }
    const whole = { ...described, what };
    if (descriptor.at('rate_limit').isPresent) this.#limit(descriptor, whole);
    for (const inner of descriptor.at('descriptors').items()) this.descriptor(inner, whole, depth + 1);
  }

  #limit(descriptor: Tree, { what, who, methods, path, hint, notes }: Described): void {
    const rate = descriptor.at('rate_limit');
    const source = { line: descriptor.line, what: what.join(', ') };
    if (rate.at('unlimited').isTrue) {
      if (who.length === 0 && methods === null && path !== '*') this.exclude.push({ path, source });
      else
        this.#refuse(
          descriptor,
          what,
          'clients without a limit are written under allow, paths under exclude',
        );
      return;
    }
    const limit = rate.at('requests_per_unit').number;
    const unit = (rate.at('unit').text ?? '').toLowerCase();
    const windowSeconds = SECONDS_OF[unit];
    const [only, ...others] = who;
    const reason =
      limit === null || windowSeconds === undefined
        ? 'it has no limit with requests_per_unit and a unit from second to year'
        : !Number.isSafeInteger(limit) || limit < 1
          ? `a limit of ${limit} has no counterpart: it is at least 1`
          : only === undefined
            ? 'it counts all clients together; here each client is counted by itself'
            : others.length > 0
              ? 'it counts a client by several things at once, which is not carried over: write a list of identifiers'
              : null;
    if (reason !== null || only === undefined || limit === null || windowSeconds === undefined) {
      this.#refuse(descriptor, what, reason ?? '');
      return;
    }
    this.rows.push({
      ...PLAIN_ROW,
      hint,
      methods,
      path,
      who: only,
      limit,
      windowSeconds,
      mode: descriptor.at('shadow_mode').isTrue ? 'shadow' : 'enforce',
      group: null,
      source,
      notes: [
        ...notes,
        ...(only.kind === 'address' ? ['of IPv6 a /64 is one client, not a single address'] : []),
        ...(windowSeconds > 86_400 ? [`a ${unit} is ${windowSeconds / 86_400} days here`] : []),
        ...(rate.at('replaces').isPresent
          ? ['replaces others there; here all policies that match apply']
          : []),
      ],
    });
  }

  #refuse({ line }: Tree, what: readonly string[], reason: string): void {
    this.unsupported.push({ line, what: what.join(', '), reason });
  }
}

/** @returns why the entry has no counterpart */
function withEntry(outer: Described, key: string, value: string | null): Described | string {
  if (value === null) {
    const who: Who = /^(?:masked_)?remote_address$/.test(key)
      ? { kind: 'address' }
      : { kind: 'header', header: key.toLowerCase() };
    const notes =
      who.kind === 'address'
        ? []
        : [`${key} is taken for the header of this name; Envoy's actions say which it is`];
    return { ...outer, who: [...outer.who, who], notes: [...outer.notes, ...notes] };
  }
  switch (key) {
    case 'generic_key': {
      const path = value.startsWith('/') ? prefixPattern(value) : null;
      if (path === null) return 'it names no path, so its route is not known: write a policy for it';
      const note = `${value} is taken for this path and what is below; Envoy's routes say which requests have it`;
      return { ...outer, path, hint: value, notes: [...outer.notes, note] };
    }
    case 'path':
    case ':path': {
      const path = exactPattern(value);
      return path === null ? 'no route says the same' : { ...outer, path, hint: value };
    }
    case 'method':
    case ':method':
      return { ...outer, methods: [value] };
    case 'remote_address':
    case 'masked_remote_address':
      return 'it holds for one client; write it as overrides of a policy, with for: { address: … }';
    default:
      return `it holds for one value of ${key}; a limit here holds for every client alike`;
  }
}
