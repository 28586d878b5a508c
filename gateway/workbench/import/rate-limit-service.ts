/**
 * envoyproxy/ratelimit: descriptors. Actions of Envoy set the meaning of their entries. Only entries whose meaning is
 * clear from this file are converted: the address, a header, and a path or a method as a value.
 */
import {
  BY_ADDRESS,
  byHeader,
  ImportError,
  Imported,
  IPV6_NOTE,
  limitPer,
  onlyOne,
  type Who,
} from './imported.ts';
import { exactPattern, prefixPattern } from './path-pattern.ts';
import type { Tree } from './tree.ts';

/** The conditions of a descriptor and of the surrounding ones. */
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

/** @throws ImportError if the file has no descriptors */
export function importRateLimitService(documents: readonly Tree[]): Imported {
  const imported = new Imported();
  for (const document of documents) {
    const descriptors = document.at('descriptors');
    if (!Array.isArray(descriptors.value))
      throw new ImportError(
        `line ${descriptors.line}: descriptors is no list; give it a file of envoyproxy/ratelimit`,
      );
    for (const descriptor of descriptors.items()) readDescriptor(descriptor, EVERYTHING, 0, imported);
  }
  return imported;
}

function readDescriptor(descriptor: Tree, outer: Described, depth: number, imported: Imported): void {
  const key = descriptor.at('key').text ?? '';
  const value = descriptor.at('value').text;
  const what = [...outer.what, value === null ? key : `${key}=${value}`];
  const described = depth > DEPTH_MAX ? 'descriptors are nested too deeply' : withEntry(outer, key, value);
  if (typeof described === 'string') {
    imported.found += limitsIn(descriptor);
    imported.refuse(descriptor, what.join(', '), described);
    return;
  }
  const whole = { ...described, what };
  if (descriptor.at('rate_limit').isPresent) addLimit(descriptor, whole, imported);
  for (const inner of descriptor.at('descriptors').items()) readDescriptor(inner, whole, depth + 1, imported);
}

/** @returns the number of limits of a descriptor and of those in it */
function limitsIn(descriptor: Tree): number {
  const own = descriptor.at('rate_limit').isPresent ? 1 : 0;
  return descriptor
    .at('descriptors')
    .items()
    .reduce((sum, inner) => sum + limitsIn(inner), own);
}

function addLimit(descriptor: Tree, described: Described, imported: Imported): void {
  imported.begin();
  const { who, methods, path, hint, notes } = described;
  const rate = descriptor.at('rate_limit');
  const source = { line: descriptor.line, what: described.what.join(', ') };
  if (rate.at('unlimited').isTrue) {
    if (who.length === 0 && methods === null && path !== '*') imported.exempt(path, source);
    else
      imported.refuse(
        source,
        source.what,
        'clients without a limit are written under allow, paths under exclude',
      );
    return;
  }
  const limit = limitPer(
    rate.at('unit').text ?? '',
    rate.at('requests_per_unit').number,
    'it has no limit with requests_per_unit and a unit from second to year',
  );
  const only = onlyOne(who);
  if (typeof limit === 'string') imported.refuse(source, source.what, limit);
  else if (typeof only === 'string') imported.refuse(source, source.what, only);
  else
    imported.add({
      ...limit,
      hint,
      methods,
      path,
      who: only,
      mode: descriptor.at('shadow_mode').isTrue ? 'shadow' : 'enforce',
      source,
      notes: [
        ...notes,
        ...(only.kind === 'address' ? [IPV6_NOTE] : []),
        ...limit.notes,
        ...(rate.at('replaces').isPresent
          ? ['its replaces disables other limits there; here all policies that match apply']
          : []),
      ],
    });
}

/** @returns the reason why the entry has no counterpart */
function withEntry(outer: Described, key: string, value: string | null): Described | string {
  if (value === null) {
    if (/^(?:masked_)?remote_address$/.test(key)) return { ...outer, who: [...outer.who, BY_ADDRESS] };
    const note = `${key} is taken for the header of this name; Envoy's actions say which it is`;
    return { ...outer, who: [...outer.who, byHeader(key)], notes: [...outer.notes, note] };
  }
  switch (key) {
    case 'generic_key': {
      const path = value.startsWith('/') ? prefixPattern(value) : null;
      if (path === null) return 'it names no path, so its route is not known: write a policy for it';
      const note = `${value} is read as this path and everything below; Envoy's routes decide which requests have it`;
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
      return 'it applies to one client; write it as overrides of a policy, with for: { address: … }';
    default:
      return `it applies to one value of ${key}; a limit here applies to every client alike`;
  }
}
