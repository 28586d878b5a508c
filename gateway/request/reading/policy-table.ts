/**
 * Everything derived from a policy file and a salt: the matcher, the digests, and the places of credentials in
 * requests. A table is replaced as a whole, so a request sees one version of the file only.
 */
import { checkRequestHead, type RequestHead } from '#gateway/http/request-head.ts';
import type { RequestOrigin } from '#gateway/http/request-origin.ts';
import { carriersOf, identityHeaders } from '#gateway/identity/credential.ts';
import { Digester, type Identity } from '#gateway/identity/digest.ts';
import { type CredentialSource, EVERYONE, type TokenIdentifier } from '#gateway/identity/identifier.ts';
import { VerifiedTokens } from '#gateway/identity/verified-tokens.ts';
import { createMatcher, type Matcher } from '#gateway/policy/match.ts';
import { type PolicySet, usesHosts } from '#gateway/policy/policy-set.ts';
import { CorsTable } from '#gateway/reply/cors.ts';
import { OWN_PAGE, type Page, pageFrom } from '#gateway/reply/page.ts';
import type { Clock } from '#shared/clock.ts';

/** A header section. Requests of node:http have this shape. */
export interface HeaderSection {
  readonly httpVersion: string;
  /** Alternating names and values. */
  readonly rawHeaders: readonly string[];
}

export class PolicyTable {
  readonly set: PolicySet;
  readonly match: Matcher;
  readonly digester: Digester;
  readonly tokens: VerifiedTokens;
  readonly everyone: Identity;
  /** The page that browsers get if their request is refused. */
  readonly page: Page;
  readonly cors: CorsTable;
  /** All places in which requests present credentials. */
  readonly carriers: readonly CredentialSource[];
  /** Lower-case name of the header in which trusted proxies name plans; empty if there is none. */
  readonly planHeaders: ReadonlySet<string>;
  readonly planSources: readonly CredentialSource[];
  /** The identifiers whose tokens name the client's plan; empty if no claim does. */
  readonly planTokens: readonly TokenIdentifier[];
  /** Whether the decision depends on the host. */
  readonly usesHosts: boolean;
  /** Lower-case names of the headers that carry credentials. */
  readonly #identityHeaders: ReadonlySet<string>;
  readonly #wallClock: Clock;

  constructor(set: PolicySet, digester: Digester, wallClock: Clock) {
    const headers = set.planHeader === null ? [] : [set.planHeader];
    this.set = set;
    this.match = createMatcher(set);
    this.digester = digester;
    this.tokens = new VerifiedTokens(digester, wallClock, set.planClaim);
    this.everyone = digester.identify(EVERYONE, '');
    this.page = set.page === null ? OWN_PAGE : pageFrom(set.page);
    this.cors = new CorsTable(set);
    this.carriers = set.identifiers.flatMap(carriersOf);
    this.planHeaders = new Set(headers);
    this.planSources = headers.map((header) => ({ kind: 'header', header }));
    this.planTokens =
      set.planClaim === null ? [] : set.identifiers.filter((identifier) => identifier.kind === 'token');
    this.usesHosts = usesHosts(set);
    this.#identityHeaders = identityHeaders([
      ...set.identifiers,
      ...set.policies.flatMap(({ distinct }) => distinct ?? []),
    ]);
    this.#wallClock = wallClock;
  }

  withPolicies(set: PolicySet): PolicyTable {
    return new PolicyTable(set, this.digester, this.#wallClock);
  }

  withSalt(salt: string): PolicyTable {
    return new PolicyTable(this.set, new Digester(salt), this.#wallClock);
  }

  /** Refuses a malformed header section before anything is charged. */
  checkHead(
    { rawHeaders, httpVersion }: HeaderSection,
    { trusted }: Pick<RequestOrigin, 'trusted'>,
  ): RequestHead {
    return checkRequestHead(rawHeaders, httpVersion, trusted, this.#identityHeaders);
  }
}
