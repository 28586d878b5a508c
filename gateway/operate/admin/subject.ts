/** Finds the identity that an operator names by an address, a credential or a digest. */
import { isIP } from 'node:net';
import type { XStatic } from 'typebox/schema';
import { Digester, type Identity, identityOf } from '#gateway/identity/digest.ts';
import type { AddressIdentifier, SimpleIdentifier } from '#gateway/identity/identifier.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { bytesOf } from '#gateway/policy/target.ts';
import { ClientAddress, clientAddress } from '#shared/client-address.ts';
import { AdminError } from './errors.ts';
import { input } from './input.ts';

export const subjectProperties = {
  subject: { type: 'string', minLength: 1, maxLength: 8192 },
  kind: { enum: ['address', 'key', 'digest'] },
  identifier: { type: 'string', maxLength: 200 },
} as const;

export const subjectSchema = input(subjectProperties, ['subject']);

export type Subject = XStatic<typeof subjectSchema>;

const DIGEST = /^[\w-]{21}[AQgw]$/;
/** Addresses that no client can have. */
const NOBODYS = new Set(['0.0.0.0', '::/64', '255.255.255.255']);

function kindOf({ subject, kind }: Subject): NonNullable<Subject['kind']> {
  const text = subject.trim();
  return kind ?? (isIP(text) !== 0 ? 'address' : DIGEST.test(text) ? 'digest' : 'key');
}

/** @throws AdminError 400 */
export function identityFor(written: Subject, set: PolicySet, salt: string): Identity {
  const { subject, identifier } = written;
  const text = subject.trim();
  const is = kindOf(written);
  switch (is) {
    case 'digest':
      if (!DIGEST.test(text))
        throw new AdminError(400, 'a digest has 22 characters, as the log and "floodgate explain" show it');
      return identityOf(text);
    case 'address':
      return addressIdentity(text, chosen(set, 'address', identifier), salt);
    case 'key': {
      if (text === '')
        throw new AdminError(400, 'a blank key identifies no client; give the key as clients send it');
      const [only, ...others] = chosen(set, 'credential', identifier);
      if (only === undefined)
        throw new AdminError(
          400,
          `"${shortened(text)}" is not an address, and the policy file has no identifier for keys`,
        );
      if (others.length > 0)
        throw new AdminError(
          400,
          `the policy file has several identifiers for keys; choose one with --identifier: ${[only, ...others].map(({ name }) => name).join(', ')}`,
        );
      return new Digester(salt).identify(only, bytesOf(text));
    }
    default:
      return is satisfies never;
  }
}

/** A client as policies with `newcomers` know it. */
export interface Visitor {
  readonly client: Identity;
  /** The bytes of its address; null if they are unknown. */
  readonly address: readonly number[] | null;
}

/**
 * Policies with `newcomers` know an address by itself, also if others count its network.
 *
 * @param identity of the subject
 */
export function visitorFor(written: Subject, identity: Identity, salt: string): Visitor {
  if (kindOf(written) !== 'address') return { client: identity, address: null };
  const address = new ClientAddress(written.subject.trim(), '', { kind: 'none' });
  return { client: new Digester(salt).identify(ADDRESS, address.counted()), address: address.bytes };
}

const ADDRESS: AddressIdentifier = { name: 'address', kind: 'address', ipv6Prefix: 64 };

function addressIdentity(text: string, identifiers: readonly SimpleIdentifier[], salt: string): Identity {
  if (isIP(text) === 0)
    throw new AdminError(400, `"${shortened(text)}" is not an address; write one such as 192.0.2.1`);
  const forms = identifiers.length === 0 ? [ADDRESS] : identifiers;
  const addresses = new Set(
    forms.map((one) => {
      const { ipv6Prefix, ipv4Prefix } = one.kind === 'address' ? one : ADDRESS;
      return clientAddress(text, '', { kind: 'none' }, ipv6Prefix, ipv4Prefix);
    }),
  );
  const [address = '', ...others] = addresses;
  if (others.length > 0)
    throw new AdminError(
      400,
      `the policy file counts addresses in several ways; choose one with --identifier: ${identifiers.map(({ name }) => name).join(', ')}`,
    );
  if (NOBODYS.has(address) || /^(?:22[4-9]|23\d)\./.test(address))
    throw new AdminError(400, `${text} is the address of no client; give a client's own`);
  return new Digester(salt).identify(ADDRESS, address);
}

function chosen(
  set: PolicySet,
  kind: SimpleIdentifier['kind'],
  name: string | undefined,
): SimpleIdentifier[] {
  const candidates = set.identifiers.filter((identifier) => identifier.kind === kind);
  if (name === undefined) return candidates;
  const found = candidates.filter((identifier) => identifier.name === name);
  if (found.length > 0) return found;
  const names = candidates.map((candidate) => candidate.name).join(', ') || 'none';
  throw new AdminError(400, `the policy file has no such identifier "${shortened(name)}"; it has: ${names}`);
}

/** Shortens a text, so that messages stay short and never contain a whole key. */
function shortened(text: string): string {
  return text.length <= 6 ? text : `${text.slice(0, 6)}…`;
}
