/**
 * What a request presents to identify its sender, read once, however many policies, plans, lists and bans ask for it.
 */
import { ambiguityOf, presentedValues, VALUES_MAX } from '#gateway/identity/credential.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import type { CredentialIdentifier, TokenIdentifier, TokenSource } from '#gateway/identity/identifier.ts';
import type { PolicyTable } from './policy-table.ts';

type Presentable = CredentialIdentifier | TokenIdentifier;
type Identifying = Pick<PolicyTable, 'digester' | 'tokens'>;

/** A value that the request presents for an identifier. */
interface Offer {
  readonly value: string;
  /** null if the value is no token. */
  readonly source: TokenSource | null;
  /** undefined until somebody asks; null if the token is invalid. */
  identity: Identity | null | undefined;
}

export class Presented {
  readonly #rawHeaders: readonly string[];
  readonly #target: string;
  /** null until somebody asks. */
  #offers: Map<Presentable, readonly Offer[]> | null = null;

  /**
   * @param rawHeaders alternating names and values
   * @param target of the request, with its query
   */
  constructor(rawHeaders: readonly string[], target: string) {
    this.#rawHeaders = rawHeaders;
    this.#target = target;
  }

  /** Returns the first value that it presents for an identifier; undefined if there is none. */
  firstOf(identifier: Presentable): string | undefined {
    return this.#offersOf(identifier)[0]?.value;
  }

  /** @returns null if the request presents nobody; a string with the reason for a refusal */
  identityOf(identifier: Presentable, by: Identifying): Identity | string | null {
    const offers = this.#offersOf(identifier);
    if (hasTwoInOnePlace(offers)) return ambiguityOf(identifier);
    let found: Identity | null = null;
    for (const offer of offers) {
      const identity = identityIn(identifier, offer, by);
      if (found !== null && identity !== null && identity.digest !== found.digest)
        return ambiguityOf(identifier);
      found ??= identity;
    }
    return found;
  }

  /** Returns the identities of all values. The application may use any of them. */
  everyIdentityOf(identifier: Presentable, by: Identifying): readonly Identity[] | string {
    const offers = this.#offersOf(identifier);
    if (offers.length > VALUES_MAX)
      return `the request presents more than ${VALUES_MAX} different values of ${identifier.name}; send one`;
    return offers.flatMap((offer) => identityIn(identifier, offer, by) ?? []);
  }

  /** Returns the plans that valid tokens name. @returns a string with the reason for a refusal */
  plansOf(identifier: TokenIdentifier, by: Identifying): readonly string[] | string {
    const offers = this.#offersOf(identifier);
    if (hasTwoInOnePlace(offers)) return ambiguityOf(identifier);
    return offers.flatMap(({ source, value }) =>
      source === null ? [] : (by.tokens.find(identifier, source, value)?.plan ?? []),
    );
  }

  #offersOf(identifier: Presentable): readonly Offer[] {
    let offers = this.#offers?.get(identifier);
    if (offers === undefined) {
      offers =
        identifier.kind === 'credential'
          ? presentedValues(this.#rawHeaders, identifier.sources, this.#target).map((value) => offer(value))
          : identifier.sources.flatMap((source) =>
              presentedValues(this.#rawHeaders, [source.carrier]).map((value) => offer(value, source)),
            );
      this.#offers ??= new Map();
      this.#offers.set(identifier, offers);
    }
    return offers;
  }
}

/** Whether one source has two values. A token can have an identity by each of several sources, such as two issuers. */
function hasTwoInOnePlace(offers: readonly Offer[]): boolean {
  return offers.some(({ source }, i) => i > 0 && source === offers[i - 1]?.source);
}

function offer(value: string, source: TokenSource | null = null): Offer {
  return { value, source, identity: undefined };
}

function identityIn(
  identifier: Presentable,
  offer: Offer,
  { digester, tokens }: Identifying,
): Identity | null {
  const { value, source } = offer;
  offer.identity ??=
    identifier.kind === 'token' && source !== null
      ? (tokens.find(identifier, source, value)?.identity ?? null)
      : digester.identify(identifier, value);
  return offer.identity;
}
