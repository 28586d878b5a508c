/** An abuse scenario: one attack from one address, and its surroundings. */
import type { PolicyFile } from '#bench/peers/floodgate.ts';
import type { Attack } from './attacker.ts';

/**
 * Happens to Floodgate's Redis during the attack: stopped for two seconds; killed and restarted; one reply in fifty
 * garbled; or only 12 MB of memory from the start.
 */
export type StoreTrouble = 'frozen' | 'restarted' | 'garbled' | 'small';

/**
 * The visitor beside the attack: a stranger has another address; a neighbour has the attacker's address and a key that
 * worked before; a guest has the attacker's address and no key.
 */
export type VisitorKind = 'stranger' | 'neighbour' | 'guest';

interface Surroundings {
  /** Changes the shipped policy file. Default: raises all limits, so that none stops the attack or the visitor. */
  readonly policies: (file: PolicyFile) => void;
  readonly visitor: VisitorKind;
  /** The attacker's address is a trusted proxy, so its X-Forwarded-For counts. */
  readonly trustsAttacker: boolean;
  readonly store: StoreTrouble;
  /** The visitor uses TLS as well. The attacker may ask for HTTP/2. */
  readonly isTls: boolean;
  /** Default: all targets. */
  readonly isForFloodgateOnly: boolean;
  /** Redis keys are compared with the admitted requests. */
  readonly countsKeys: boolean;
  /** At most so many requests of the attacker may reach the upstream in each minute. */
  readonly admittedPerMinuteMax: number;
  /** So many clients are banned at the end. */
  readonly bans: number;
  /** No header that upstreams may trust may reach the upstream. */
  readonly smuggles: boolean;
}

export interface AbuseScenario extends Partial<Surroundings> {
  readonly name: string;
  readonly title: string;
  readonly attack: Attack;
}

export function scenario(
  name: string,
  title: string,
  attack: Attack,
  surroundings: Partial<Surroundings> = {},
): AbuseScenario {
  return { name, title, attack, ...surroundings };
}

/** Counts responses by a field of their body as well. */
export function countByEmail({ policies }: PolicyFile): void {
  policies.push({
    name: 'account',
    route: `POST ${RESPONSES}`,
    identifier: { body: 'email' },
    limit: 5,
    window: '1m',
  });
}

/** The limits of the shipped policy file. */
export const shipped = { policies: () => undefined };
/** The shipped policy file admits 100 requests a minute on these routes. */
export const counted = { ...shipped, countsKeys: true, admittedPerMinuteMax: 100 };

/** The shipped policy file admits ten requests an hour on this route. Here it also bans who goes on. */
export const LOGIN = '/api/auth/callback/token';
export const banning: Partial<Surroundings> = {
  isForFloodgateOnly: true,
  bans: 1,
  policies({ policies }) {
    for (const policy of policies)
      if (policy.route === `POST ${LOGIN}`)
        policy.ban = { after: 10, within: '10m', for: '1h', growing: true };
  },
};

export const SURVEYS = '/api/v1/management/surveys';
export const ENVIRONMENT = '/api/v1/client/bench/environment';
export const RESPONSES = '/api/v1/client/bench/responses';
export const SMALL = '/bench/small';
export const DOWNLOAD = '/bench/download';
