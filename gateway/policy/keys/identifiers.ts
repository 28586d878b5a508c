/** Builds the identifiers of a policy file: the declared ones, and those that policies define themselves. */

import type { XStatic } from 'typebox/schema';
import {
  type CombinedIdentifier,
  type CredentialSource,
  EVERYONE,
  type FirstIdentifier,
  type FirstPart,
  type Identifier,
  type SimpleIdentifier,
  type TokenSource,
} from '#gateway/identity/identifier.ts';
import { attempt, type Path, type Report, refuseKeys } from '#gateway/policy/problems.ts';
import type { ReferencedFiles } from '#gateway/policy/referenced-files.ts';
import { type Route, readHosts } from '#gateway/policy/route.ts';
import type { identifier, identifierSchema } from './identifier-keys.ts';
import { bodyIdentifier, credentialSource } from './identifier-sources.ts';
import { KEY_SET_BYTES_MAX, parseKeySet } from './key-set.ts';
import type { NetworkLoader } from './networks.ts';

type Entry = XStatic<typeof identifierSchema>;
type SourceEntry = Exclude<Entry['source'], string>[number];
type TokenEntry = Extract<SourceEntry, { jwt: unknown }>['jwt'];
type Written = XStatic<typeof identifier.schema>;

/** The part of a policy on which some identifiers depend. */
interface PolicyPlace {
  /** null if it has a mistake; then no other mistake that depends on it is reported. */
  readonly route: Route | null;
  readonly hosts: readonly string[] | undefined;
}

const HOST = 'host';
const PATH = 'path.';

export class IdentifierTable {
  readonly #report: Report;
  readonly #declared = new Map<string, SimpleIdentifier>();
  /** Entries with `source: [{ path: NAME }]`, which depend on the route of each policy. The value is the parameter. */
  readonly #params = new Map<string, string>();
  /** Identifiers that policies define, by their meaning, so that equal ones share one object. */
  readonly #used = new Map<string, Identifier>();
  readonly #referenced: ReferencedFiles;
  readonly #networks: NetworkLoader;
  #tokenSources = 0;

  constructor(
    entries: Readonly<Record<string, Entry>>,
    referenced: ReferencedFiles,
    networks: NetworkLoader,
    report: Report,
  ) {
    this.#report = report;
    this.#networks = networks;
    this.#referenced = referenced;
    for (const [name, entry] of Object.entries(entries))
      this.#declare(name, entry, (path, ...mistake) => report(['identifiers', name, ...path], ...mistake));
  }

  get declared(): SimpleIdentifier[] {
    return [...this.#declared.values(), ...[...this.#used.values()].filter((one) => one.kind === 'body')];
  }

  /**
   * Returns the identifier of a policy.
   *
   * @returns null if there is a mistake, which is reported
   */
  of(written: Written, place: PolicyPlace, here: Path): Identifier | null {
    if (typeof written === 'string') return this.named(written, place, here);
    if ('first' in written) return this.#first(written.first, place, [...here, 'first']);
    if (!('body' in written)) return this.#combined(written, place, here);
    const { body, required } = written;
    return this.#one(`body.${body} ${required === true}`, bodyIdentifier(`body.${body}`, written));
  }

  /** Returns a single identifier, such as the value of `unless`. */
  named(name: string, { route, hosts }: PolicyPlace, here: Path): SimpleIdentifier | null {
    if (name === EVERYONE.name) return EVERYONE;
    if (this.#isHost(name)) return this.#host(hosts, here);
    const param = name.startsWith(PATH) ? name.slice(PATH.length) : this.#params.get(name);
    if (param !== undefined) return route === null ? null : this.#path(name, param, route, here);
    const identifier = this.#declared.get(name);
    if (identifier === undefined) {
      const known = [...this.#declared.keys(), ...this.#params.keys(), EVERYONE.name];
      this.#report(here, `unknown identifier ${name}`, `identifiers has: ${known.join(', ')}`);
    }
    return identifier ?? null;
  }

  /** Whether it is the host or a part of the path, which depend on a policy. */
  isOfPolicy(name: string): boolean {
    return name.startsWith(PATH) || this.#params.has(name) || this.#isHost(name);
  }

  #isHost(name: string): boolean {
    return name === HOST && !this.#declared.has(name) && !this.#params.has(name);
  }

  #combined(names: readonly string[], place: PolicyPlace, here: Path): CombinedIdentifier | null {
    const mistake = (message: string, fix: string): null => {
      this.#report(here, message, fix);
      return null;
    };
    if (names.includes(EVERYONE.name))
      return mistake(
        'everyone cannot be combined with others',
        'write identifier: everyone, or leave it out',
      );
    const parts = names.map((name, i) => this.named(name, place, [...here, i]));
    if (!parts.every((part) => part !== null)) return null;
    if (parts.filter(({ kind }) => kind === 'address').length > 1)
      return mistake('two of these identifiers are addresses', 'keep the one with the longer prefixes');
    return this.#one(parts.map((part) => meaning(part, place.hosts)).join('+'), combined(parts));
  }

  #first(names: readonly string[], place: PolicyPlace, here: Path): FirstIdentifier | null {
    const parts: FirstPart[] = [];
    for (const [i, name] of names.entries()) {
      const part = this.named(name, place, [...here, i]);
      if (part === null) continue;
      if (part.kind === 'address' && i < names.length - 1)
        this.#report(
          [...here, i],
          `every request has an address, so those after ${name} would never count`,
          `write ${name} last`,
        );
      else if (part.kind === 'address' || part.kind === 'credential' || part.kind === 'token')
        parts.push(part);
      else
        this.#report(
          [...here, i],
          `${name} cannot be one of several alternatives`,
          'name credentials and signed tokens, and at the end an address; write a policy of its own for the others',
        );
    }
    if (parts.length < names.length) return null;
    const last = parts.at(-1);
    const name = parts.map(({ name }) => name).join('|');
    return this.#one(name, { name, kind: 'first', parts, address: last?.kind === 'address' ? last : null });
  }

  #declare(name: string, entry: Entry, report: Report): void {
    const { source, ipv4Prefix = 32, ipv6Prefix = 64, ignoreCase = false } = entry;
    if (name === EVERYONE.name)
      report([], 'everyone already means all clients together', 'choose another name', 'key');
    const isAddress = source === 'client-address';
    const sources = isAddress ? [] : source;
    // Sources of the other kinds are credentials, which one identifier can mix.
    const special = sources.find(isSpecial);
    if (ignoreCase && (isAddress || special !== undefined)) {
      const fix = 'remove it; for parts of the path, write ignoreCase: true at the top of the file';
      const why = 'is only for sources header, bearer, cookie and query';
      refuseKeys(entry, ['ignoreCase'], [], report, why, fix);
    }
    if (isAddress) {
      const ipv4 = ipv4Prefix === 32 ? {} : { ipv4Prefix };
      this.#declared.set(name, { name, kind: 'address', ipv6Prefix, ...ipv4 });
      return;
    }
    const only = 'is only for source: client-address';
    refuseKeys(entry, ['ipv4Prefix', 'ipv6Prefix'], [], report, only, 'remove it');
    if (special === undefined) {
      const caseless = ignoreCase ? { ignoresCase: true as const } : {};
      const credentials = sources.flatMap((one) => (isSpecial(one) ? [] : [credentialSource(one)]));
      this.#declared.set(name, { name, kind: 'credential', sources: credentials, ...caseless });
      return;
    }
    if (sources.length > 1 && !sources.every((one) => 'jwt' in one))
      report(
        ['source'],
        `{ ${Object.keys(special)[0]}: … } cannot be mixed with other sources`,
        'give the other sources an identifier of their own, and write a list of both in the policy',
      );
    const at = sources.indexOf(special);
    if ('path' in special) this.#params.set(name, special.path);
    else if ('body' in special) this.#declared.set(name, bodyIdentifier(name, special));
    else if ('network' in special) {
      const here: Path = ['identifiers', name, 'source', at, 'network'];
      const networks = this.#networks.of(special.network, here);
      this.#declared.set(name, { name, kind: 'network', networks });
    } else {
      const tokens = sources.flatMap((one, i) =>
        'jwt' in one
          ? (this.#token(one.jwt, (path, ...mistake) => report(['source', i, 'jwt', ...path], ...mistake)) ??
            [])
          : [],
      );
      this.#declared.set(name, { name, kind: 'token', sources: tokens });
    }
  }

  /** @returns null if there is a mistake, which is reported */
  #token({ bearer, header, cookie, ...entry }: TokenEntry, report: Report): TokenSource | null {
    const carriers: CredentialSource[] = [];
    if (bearer !== undefined) carriers.push({ kind: 'bearer', prefix: '' });
    if (header !== undefined) carriers.push(credentialSource({ header }));
    if (cookie !== undefined) carriers.push(credentialSource({ cookie }));
    const [carrier] = carriers;
    if (carriers.length !== 1)
      report(
        [],
        'a token must have exactly one place',
        'write one of bearer: true, header: NAME and cookie: NAME',
      );
    const keys = attempt(report, ['jwks'], () =>
      parseKeySet(this.#referenced.text(entry.jwks, KEY_SET_BYTES_MAX), entry.jwks),
    );
    if (carrier === undefined || keys === null) return null;
    const { claim, issuer = null, audience } = entry;
    const audiences = audience === undefined ? null : [audience].flat();
    return { id: this.#tokenSources++, carrier, claim, keys, issuer, audience: audiences };
  }

  #path(name: string, param: string, route: Route, here: Path): SimpleIdentifier | null {
    const { segments, text, ignoresCase } = route;
    const places = segments.flatMap((segment, at) =>
      segment.kind === 'param' && segment.name === param ? [{ at, takesRest: segment.takesRest }] : [],
    );
    const [place] = places;
    if (place !== undefined && places.length === 1) {
      const identifier = { name, kind: 'path', param, ...place, ignoresCase } as const;
      return this.#one(meaning(identifier), identifier);
    }
    if (place === undefined)
      this.#report(
        here,
        `the route "${text}" has no {${param}}`,
        `write {${param}} at its place in the path`,
      );
    else
      this.#report(here, `{${param}} appears twice in the route "${text}"`, 'give one of them another name');
    return null;
  }

  #host(hosts: readonly string[] | undefined, here: Path): SimpleIdentifier | null {
    if (hosts === undefined) {
      this.#report(
        here,
        'clients can invent any number of hosts',
        'name those that are counted apart, such as hosts: [shop.example.org, "*.example.org"]',
      );
      return null;
    }
    // The key hosts reports its mistakes itself.
    const identifier = { name: HOST, kind: HOST, hosts: readHosts(hosts, () => undefined) } as const;
    return this.#one(meaning(identifier, hosts), identifier);
  }

  #one<T extends Identifier>(meaning: string, made: T): T {
    const known = this.#used.get(meaning) ?? made;
    this.#used.set(meaning, known);
    return known as T;
  }
}

/** Kinds of sources that are no credentials. */
const SPECIAL = ['path', 'body', 'network', 'jwt'] as const;

function isSpecial(
  entry: SourceEntry,
): entry is Exclude<SourceEntry, Parameters<typeof credentialSource>[0]> {
  return SPECIAL.some((kind) => kind in entry);
}

function meaning(identifier: SimpleIdentifier, hosts: readonly string[] = []): string {
  if (identifier.kind === 'host') return `${identifier.name}@${hosts.toSorted().join(' ')}`;
  return identifier.kind === 'path'
    ? `${identifier.name}@${identifier.at}${identifier.takesRest ? '*' : ''}`
    : identifier.name;
}

function combined(parts: readonly SimpleIdentifier[]): CombinedIdentifier {
  const credentialAt = parts.findIndex(({ kind }) => kind === 'credential');
  const isVouchedFor = parts.some(({ kind }) => kind === 'token');
  const pathAt = isVouchedFor ? -1 : parts.findIndex(({ kind }) => kind === 'path');
  return {
    name: parts.map(({ name }) => name).join('+'),
    kind: 'combined',
    parts,
    proofAt: credentialAt >= 0 ? credentialAt : pathAt,
  };
}
