/** The client of a line in a log of the gateway, which has digests instead of addresses and credentials. */
import { type Identity, identityOf } from '#gateway/identity/digest.ts';
import {
  type FirstIdentifier,
  type Identifier,
  isPresented,
  type SimpleIdentifier,
} from '#gateway/identity/identifier.ts';
import type { Match } from '#gateway/policy/match.ts';
import type { Sender } from '#gateway/request/reading/caller.ts';
import {
  type LoggedIdentities,
  type PresentedIdentities,
  pathIdentity,
} from '#gateway/request/reading/identify.ts';
import type { PolicyTable } from '#gateway/request/reading/policy-table.ts';
import type { KnownAs } from '#gateway/request/reading/reading.ts';
import type { LoggedDigests } from './formats/logged-request.ts';

/** An IPv6 address in the log is counted by its /64. */
const LOGGED_PREFIX = 64;

/** The gateway has read X-Forwarded-For before it wrote the line. */
export const NO_PROXY = { trusted: false };

/** An identity in a line. */
interface Found {
  readonly digest: string;
  /** The identifier under which the line has it. */
  readonly name: string;
  /** The part of the kind `first` that the request presented, if that is known. */
  readonly part: SimpleIdentifier | undefined;
}

export class LoggedClient implements Sender, LoggedIdentities {
  readonly origin = NO_PROXY;
  readonly address = { bytes: null };
  readonly charges = null;
  readonly table: PolicyTable;
  readonly counted: KnownAs;
  /** Credentials that the gateway also charged to the address. */
  readonly unproven: readonly Identity[];
  readonly #digests: LoggedDigests;

  /** @param isAbsent whether the gateway looked for such a credential when it wrote the line, and found none */
  constructor(
    digests: LoggedDigests,
    match: Match,
    table: PolicyTable,
    isAbsent: (identifier: SimpleIdentifier) => boolean,
  ) {
    this.#digests = digests;
    this.table = table;
    const identities: (Identity | null)[] = [];
    const credentials: Identity[] = [];
    const unproven: Identity[] = [];
    const parts: (SimpleIdentifier | undefined)[] = [];
    const { cover } = match;
    for (const identifier of cover?.identifiers ?? []) {
      const found =
        identifier.kind === 'first' ? firstIn(identifier, digests, isAbsent) : foundIn(identifier, digests);
      const known = found === null ? null : identityOf(found.digest);
      const identity = identifier.kind === 'everyone' ? table.everyone : known;
      if (found?.part !== undefined) parts[identities.length] = found.part;
      identities.push(identity);
      if (identity === null || !isPresented(found?.part ?? identifier)) continue;
      credentials.push(identity);
      if (isUnproven(found?.name ?? identifier.name, digests)) unproven.push(identity);
    }
    const provable = digests.proves ? (credentials.at(-1) ?? null) : null;
    const values = cover?.distinct.map((identifier) => valueIn(identifier, match, digests, table)) ?? [];
    this.counted = { identities, proofs: null, parts, values, credentials, provable, pathValues: [] };
    this.unproven = unproven;
  }

  get presented(): PresentedIdentities {
    const { address, identities } = this.#digests;
    const certain = [...(address === null ? [] : [address]), ...identities.values()].map(identityOf);
    return { certain, keys: [], isSigned: false, doubtful: [] };
  }

  identity(): Identity {
    return identityOf(this.#digests.address ?? '');
  }
}

/** Returns a value that a policy counts. Of values that are no part of the path, the line has the digests of some. */
function valueIn(
  identifier: SimpleIdentifier,
  match: Match,
  digests: LoggedDigests,
  table: PolicyTable,
): Identity | null {
  if (identifier.kind === 'path') return pathIdentity(identifier, match.path, table.digester);
  const found = foundIn(identifier, digests);
  return found === null ? null : identityOf(found.digest);
}

function isUnproven(name: string, { unproven, address }: LoggedDigests): boolean {
  return address !== null && unproven.includes(name);
}

function foundIn(identifier: Identifier, { identities, address }: LoggedDigests): Found | null {
  const { name } = identifier;
  const digest = identities.get(name) ?? (isLogged(identifier) ? address : null);
  return digest === null ? null : { digest, name, part: undefined };
}

/** Whether the line has this form of the address. */
function isLogged(identifier: Identifier): boolean {
  if (identifier.kind !== 'address') return false;
  return identifier.ipv6Prefix === LOGGED_PREFIX && identifier.ipv4Prefix === undefined;
}

/**
 * Finds the identity that counted, or would have counted under a policy that the gateway did not have.
 *
 * @returns null if the line does not tell it, or not the address that the policy also charges
 */
function firstIn(
  identifier: FirstIdentifier,
  digests: LoggedDigests,
  isAbsent: (identifier: SimpleIdentifier) => boolean,
): Found | null {
  const { parts, address } = identifier;
  const found = foundIn(identifier, digests) ?? firstPartIn(parts, digests, isAbsent);
  if (found === null) return null;
  if (address !== null && found.digest === digests.address) return { ...found, part: address };
  const isCharged = address === null || isLogged(address) || !isUnproven(found.name, digests);
  return isCharged ? found : null;
}

function firstPartIn(
  parts: FirstIdentifier['parts'],
  digests: LoggedDigests,
  isAbsent: (identifier: SimpleIdentifier) => boolean,
): Found | null {
  for (const part of parts) {
    const found = foundIn(part, digests);
    if (found !== null) return { ...found, part };
    if (!isAbsent(part)) return null;
  }
  return null;
}
