/** Builds the identifiers of a policy file: the declared ones, and those that policies define themselves. */

import type { XStatic } from 'typebox/schema';
import {
  type BodyIdentifier,
  type CombinedIdentifier,
  type CredentialSource,
  EVERYONE,
  type FirstIdentifier,
  type FirstPart,
  type HostIdentifier,
  type Identifier,
  type PathIdentifier,
  type SimpleIdentifier,
  type TokenSource,
} from '#gateway/identity/identifier.ts';
import { attempt, type Path, type Report } from '#gateway/policy/problems.ts';
import type { ReferencedFiles } from '#gateway/policy/referenced-files.ts';
import type { Route } from '#gateway/policy/route.ts';
import { readHosts } from './hosts.ts';
import type { identifier } from './identifier.ts';
import type { identifierSchema } from './identifier-keys.ts';
import { KEY_SET_BYTES_MAX, parseKeySet } from './key-set.ts';
import type { NetworkLoader } from './networks.ts';

type Entry = XStatic<typeof identifierSchema>;
type SourceEntry = Exclude<Entry['source'], string>[number];
type BodyEntry = Extract<SourceEntry, { body: unknown }>;
type Written = XStatic<typeof identifier.schema>;
type TokenEntry = Extract<SourceEntry, { jwt: unknown }>['jwt'];

const ANY_BEARER: CredentialSource = { kind: 'bearer', prefix: '' };

/** The part of a policy on which some identifiers depend. */
interface PolicyPlace {
  /** null if it has a mistake; then no other mistake that depends on it is reported. */
  readonly route: Route | null;
  readonly hosts: readonly string[] | undefined;
}

const HOST = 'host';
const PATH = 'path.';
const BODY = 'body.';

export class IdentifierTable {
  readonly #report: Report;
  readonly #declared = new Map<string, SimpleIdentifier>();
  /** Entries with `source: [{ path: NAME }]`, which depend on the route of each policy. The value is the parameter. */
  readonly #params = new Map<string, string>();
  /** Identifiers for body fields that policies define themselves. */
  readonly #bodies = new Map<string, BodyIdentifier>();
  /** Identifiers in use by their meaning, so that equal ones share one object. */
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
    for (const [name, entry] of Object.entries(entries)) this.#declare(name, entry);
  }

  get declared(): SimpleIdentifier[] {
    return [...this.#declared.values(), ...this.#bodies.values()];
  }

  /**
   * Returns the identifier of a policy.
   *
   * @returns null if there is a mistake, which is reported
   */
  of(written: string, place: PolicyPlace, here: Path): SimpleIdentifier | null;
  of(written: Written, place: PolicyPlace, here: Path): Identifier | null;
  of(written: Written, place: PolicyPlace, here: Path): Identifier | null {
    if (typeof written === 'string') return this.#simple(written, place, here);
    if ('first' in written) return this.#first(written.first, place, [...here, 'first']);
    if ('body' in written) return this.#body(written);
    if (written.includes(EVERYONE.name)) {
      this.#report(
        here,
        'everyone cannot be combined with others',
        'write identifier: everyone, or leave it out',
      );
      return null;
    }
    const parts = written.map((name, i) => this.#simple(name, place, [...here, i]));
    if (!parts.every((part) => part !== null)) return null;
    if (parts.filter(({ kind }) => kind === 'address').length > 1) {
      this.#report(here, 'two of these identifiers are addresses', 'keep the one with the longer prefixes');
      return null;
    }
    return this.#one(parts.map((part) => meaning(part, place)).join('+'), () => combined(parts));
  }

  /** Whether it is the host or a part of the path, which depend on a policy. */
  isOfPolicy(name: string): boolean {
    return name.startsWith(PATH) || this.#params.has(name) || (name === HOST && !this.#declared.has(name));
  }

  #first(names: readonly string[], place: PolicyPlace, here: Path): FirstIdentifier | null {
    const parts: FirstPart[] = [];
    for (const [i, name] of names.entries()) {
      const part = this.#simple(name, place, [...here, i]);
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
    return this.#one(name, () => ({
      name,
      kind: 'first',
      parts,
      address: last?.kind === 'address' ? last : null,
    }));
  }

  #declare(name: string, { source, ipv4Prefix, ipv6Prefix, ignoreCase = false }: Entry): void {
    if (name === EVERYONE.name)
      this.#report(
        ['identifiers', name],
        'everyone already means all clients together',
        'choose another name',
        'key',
      );
    if (source === 'client-address') {
      this.#declared.set(name, {
        name,
        kind: 'address',
        ipv6Prefix: ipv6Prefix ?? 64,
        ...(ipv4Prefix === undefined || ipv4Prefix === 32 ? {} : { ipv4Prefix }),
      });
      if (ignoreCase) this.#reportIgnoreCase(name);
      return;
    }
    if (
      ignoreCase &&
      source.some((entry) => 'path' in entry || 'body' in entry || 'network' in entry || 'jwt' in entry)
    )
      this.#reportIgnoreCase(name);
    for (const [key, value] of Object.entries({ ipv4Prefix, ipv6Prefix }))
      if (value !== undefined)
        this.#report(
          ['identifiers', name, key],
          `${key} is only for source: client-address`,
          'remove it',
          'key',
        );
    const param = source.find((entry) => 'path' in entry);
    const body = source.find((entry) => 'body' in entry);
    const network = source.find((entry) => 'network' in entry);
    const only = param ?? body ?? network;
    if (source.length > 1 && only !== undefined)
      this.#report(
        ['identifiers', name, 'source'],
        `a ${only === param ? 'path parameter' : only === body ? 'field of the body' : 'file of networks'} must be the only source`,
        'give the other sources an identifier of their own, and write a list of both in the policy',
      );
    if (param !== undefined) this.#params.set(name, param.path);
    else if (body !== undefined) this.#declared.set(name, bodyIdentifier(name, body));
    else if (network !== undefined) {
      const here: Path = ['identifiers', name, 'source', source.indexOf(network), 'network'];
      this.#declared.set(name, { name, kind: 'network', networks: this.#networks.of(network.network, here) });
    } else this.#declared.set(name, this.#credential(name, source, ignoreCase));
  }

  #reportIgnoreCase(name: string): void {
    this.#report(
      ['identifiers', name, 'ignoreCase'],
      'ignoreCase is only for sources header, bearer, cookie and query',
      'remove it; for parts of the path, write ignoreCase: true at the top of the file',
      'key',
    );
  }

  #credential(name: string, source: readonly SourceEntry[], ignoreCase: boolean): SimpleIdentifier {
    const here: Path = ['identifiers', name, 'source'];
    const tokens = source.flatMap((entry, i) =>
      'jwt' in entry ? (this.#tokenSource(entry.jwt, [...here, i, 'jwt']) ?? []) : [],
    );
    if (!source.some((entry) => 'jwt' in entry))
      return {
        name,
        kind: 'credential',
        sources: source.map(credentialSource),
        ...(ignoreCase ? { ignoresCase: true } : {}),
      };
    if (!source.every((entry) => 'jwt' in entry))
      this.#report(
        here,
        'claims of tokens and plain values cannot be mixed',
        'give the other sources an identifier of their own',
      );
    return { name, kind: 'token', sources: tokens };
  }

  #body(entry: BodyEntry): BodyIdentifier {
    const identifier = bodyIdentifier(`${BODY}${entry.body}`, entry);
    const key = `${identifier.name} ${identifier.isRequired}`;
    const known = this.#bodies.get(key) ?? identifier;
    this.#bodies.set(key, known);
    return known;
  }

  #tokenSource(entry: TokenEntry, here: Path): TokenSource | null {
    const carrier = carrierOf(entry);
    if (carrier === null)
      this.#report(
        here,
        'a token must have exactly one place',
        'write one of bearer: true, header: NAME and cookie: NAME',
      );
    const keys = attempt(this.#report, [...here, 'jwks'], () =>
      parseKeySet(this.#referenced.text(entry.jwks, KEY_SET_BYTES_MAX), entry.jwks),
    );
    if (carrier === null || keys === null) return null;
    const { claim, issuer = null, audience } = entry;
    return {
      id: this.#tokenSources++,
      carrier,
      claim,
      keys,
      issuer,
      audience: audience === undefined ? null : [audience].flat(),
    };
  }

  #simple(name: string, { route, hosts }: PolicyPlace, here: Path): SimpleIdentifier | null {
    if (name === EVERYONE.name) return EVERYONE;
    if (name === HOST && !this.#declared.has(name) && !this.#params.has(name)) return this.#host(hosts, here);
    const param = name.startsWith(PATH) ? name.slice(PATH.length) : this.#params.get(name);
    if (param !== undefined) return route === null ? null : this.#path(name, param, route, here);
    const identifier = this.#declared.get(name);
    if (identifier === undefined) {
      const known = [...this.#declared.keys(), ...this.#params.keys(), EVERYONE.name];
      this.#report(here, `unknown identifier ${name}`, `identifiers has: ${known.join(', ')}`);
    }
    return identifier ?? null;
  }

  #path(
    name: string,
    param: string,
    { segments, text, ignoresCase }: Route,
    here: Path,
  ): SimpleIdentifier | null {
    const places = [...segments.entries()].filter(
      ([, segment]) => segment.kind === 'param' && segment.name === param,
    );
    const [place] = places;
    if (place === undefined || place[1].kind !== 'param') {
      this.#report(
        here,
        `the route "${text}" has no {${param}}`,
        `write {${param}} at its place in the path`,
      );
      return null;
    }
    if (places.length > 1) {
      this.#report(here, `{${param}} appears twice in the route "${text}"`, 'give one of them another name');
      return null;
    }
    const { takesRest } = place[1];
    const identifier: PathIdentifier = { name, kind: 'path', param, at: place[0], takesRest, ignoresCase };
    return this.#one(meaning(identifier, { hosts: undefined }), () => identifier);
  }

  #host(hosts: readonly string[] | undefined, here: Path): HostIdentifier | null {
    if (hosts === undefined) {
      this.#report(
        here,
        'clients can invent any number of hosts',
        'name those that are counted apart, such as hosts: [shop.example.org, "*.example.org"]',
      );
      return null;
    }
    // The key hosts reports its mistakes itself.
    const identifier: HostIdentifier = { name: HOST, kind: HOST, hosts: readHosts(hosts, () => undefined) };
    return this.#one(meaning(identifier, { hosts }), () => identifier);
  }

  #one<T extends Identifier>(meaning: string, make: () => T): T {
    const known = this.#used.get(meaning);
    if (known !== undefined) return known as T;
    const made = make();
    this.#used.set(meaning, made);
    return made;
  }
}

function meaning(identifier: SimpleIdentifier, { hosts = [] }: Pick<PolicyPlace, 'hosts'>): string {
  if (identifier.kind === 'host') return `${identifier.name}@${hosts.toSorted().join(' ')}`;
  return identifier.kind === 'path'
    ? `${identifier.name}@${identifier.at}${identifier.takesRest ? '*' : ''}`
    : identifier.name;
}

function bodyIdentifier(name: string, { body: field, required = false }: BodyEntry): BodyIdentifier {
  return { name, kind: 'body', field, isRequired: required };
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

function credentialSource(entry: SourceEntry): CredentialSource {
  if ('header' in entry) return { kind: 'header', header: entry.header.toLowerCase() };
  if ('bearer' in entry) return { kind: 'bearer', prefix: entry.bearer };
  if ('cookie' in entry) return { kind: 'cookie', cookie: entry.cookie };
  if ('query' in entry) return { kind: 'query', parameter: entry.query };
  throw new Error('a claim, a path parameter, a field of the body or a network is not a credential');
}

/** @returns null unless exactly one place is given */
function carrierOf({ bearer, header, cookie }: TokenEntry): CredentialSource | null {
  if (bearer !== undefined) return header === undefined && cookie === undefined ? ANY_BEARER : null;
  if (header !== undefined) return cookie === undefined ? credentialSource({ header }) : null;
  return cookie === undefined ? null : credentialSource({ cookie });
}
