/** An abuse scenario: one attack from one address, and the conditions under which it happens. */
import type { PolicyFile } from '#bench/peers/floodgate.ts';
import type { Attack } from './attacker.ts';

/**
 * The visitor that uses the service during the attack. A `stranger` has another address. A `neighbour` has the
 * attacker's address, and an API key that worked before. A `guest` has the attacker's address and no API key.
 */
export type VisitorKind = 'stranger' | 'neighbour' | 'guest';

interface Surroundings {
  /** Changes the shipped policy file. Default: raises all limits, so that no limit stops the attack or the visitor. */
  readonly policies: (file: PolicyFile) => void;
  readonly visitor: VisitorKind;
  /** Whether the attacker's address is a trusted proxy, so that its X-Forwarded-For counts. */
  readonly trustsAttacker: boolean;
  /**
   * `frozen`: Redis is stopped for two seconds during the attack. `week-old`: it has kept histories of clients for a week, so limits of newcomers act.
   */
  readonly store: 'frozen' | 'week-old';
  /** Whether the number of new Redis keys must be in proportion to the number of admitted requests. */
  readonly countsKeys: boolean;
  /** Maximum number of requests of the attacker that may reach the upstream in each minute. */
  readonly admittedPerMinuteMax: number;
  /** Number of clients that must be banned at the end. */
  readonly bans: number;
  /** Whether the attack sends headers that some upstreams trust. None of them may reach the upstream. */
  readonly smuggles: boolean;
}

export interface AbuseScenario extends Partial<Surroundings> {
  readonly name: string;
  readonly title: string;
  readonly attack: Attack;
}

type Row = readonly [title: string, attack: Attack, surroundings?: Partial<Surroundings>];

/** Makes scenarios of rows by their names. */
export function scenarios(rows: Readonly<Record<string, Row>>): readonly AbuseScenario[] {
  return Object.entries(rows).map(([name, [title, attack, more]]) => ({ name, title, attack, ...more }));
}

/** Adds a policy that counts requests by a field of their body. */
export function countByEmail({ policies }: PolicyFile): void {
  policies.push({
    name: 'account',
    route: `POST ${RESPONSES}`,
    identifier: { body: 'email' },
    limit: 5,
    window: '1m',
  });
}

/** Keeps the limits of the shipped policy file. */
export const shipped = { policies: () => undefined };
/**
 * Also checks that no more than 100 requests a minute are admitted, as the shipped policy file allows on these routes.
 */
export const counted = { ...shipped, countsKeys: true, admittedPerMinuteMax: 100 };

/** The shipped policy file admits ten requests an hour on this route. `banning` also bans clients that send more. */
export const LOGIN = '/api/auth/callback/token';
export const banning: Partial<Surroundings> = {
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
