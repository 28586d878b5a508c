/**
 * The identities that were found in a request, and which of them its reply can prove.
 *
 * A reply can prove a credential only if it was the only one of its request. Otherwise the upstream may have accepted
 * another one, such as a session cookie.
 */
import { isOnlyCredential, type PresentedCredential } from '#gateway/identity/credential.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import type { SimpleIdentifier } from '#gateway/identity/identifier.ts';
import type { KnownAs } from './reading.ts';

const NO_IDENTITIES: readonly Identity[] = [];

export class Identified implements KnownAs {
  readonly identities: (Identity | null)[] = [];
  proofs: (Identity | undefined)[] | null = null;
  parts: (SimpleIdentifier | undefined)[] | null = null;
  values: readonly (Identity | null)[] = NO_IDENTITIES;
  readonly credentials: Identity[] = [];
  pathValues: readonly Identity[] = NO_IDENTITIES;
  /** The credential that was found last; null if none. */
  #presented: PresentedCredential | null = null;
  /** Whether the request also has a signed token or a counted field of the body. The reply may depend on that. */
  #hasOther = false;

  get provable(): Identity | null {
    const [only, ...others] = this.credentials;
    if (only === undefined || others.length > 0 || this.#hasOther) return null;
    return this.#presented !== null && isOnlyCredential(this.#presented) ? only : null;
  }

  add(identity: Identity | null, proof?: Identity): void {
    if (proof !== undefined) {
      this.proofs ??= [];
      this.proofs[this.identities.length] = proof;
    }
    this.identities.push(identity);
  }

  addPart(identity: Identity, part: SimpleIdentifier): void {
    this.parts ??= [];
    this.parts[this.identities.length] = part;
    this.add(identity);
  }

  addCredential(identity: Identity, presented: PresentedCredential): void {
    if (!this.credentials.some(({ digest }) => digest === identity.digest)) this.credentials.push(identity);
    this.#presented = presented;
  }

  addOther(): void {
    this.#hasOther = true;
  }

  addPathValue(value: Identity): void {
    this.pathValues = [...this.pathValues, value];
  }

  /**
   * Makes the reply prove nothing. Applications answer some requests, such as OPTIONS, without checking credentials.
   */
  proveNothing(): void {
    this.credentials.length = 0;
    this.pathValues = NO_IDENTITIES;
  }
}
