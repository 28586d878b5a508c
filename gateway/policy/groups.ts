/** The words of all groups of clients that policies can count, see group.ts. */

/** Operators, clients and metrics are told this about a group. */
export interface GroupWords {
  /** The key of a policy with the limit of the group, and the end of the names of such limits. */
  readonly key: string;
  readonly one: string;
  readonly together: string;
  /** Why a client is not in it. */
  readonly outside: string;
  readonly why: string;
  /** The code for those whom the limit denies, and the words of its page. */
  readonly code: `gateway_${string}`;
  readonly heading: string;
  readonly sentence: string;
  readonly metrics: {
    /** Admitted requests on the routes of such policies, by the label `client`. */
    readonly visitors: MetricWords & { readonly inside: string; readonly outside: string };
    readonly denied: MetricWords;
    readonly actsFrom: MetricWords;
  };
}

interface MetricWords {
  readonly name: string;
  readonly help: string;
}

/** All clients who are no regulars. */
export const NEWCOMERS = {
  key: 'newcomers',
  one: 'newcomer',
  together: 'all newcomers',
  outside: 'the client is a regular',
  why: 'The client is a newcomer: it had no good replies on enough different days lately, or its network is under regulars.never. All newcomers share this limit; regulars are not counted.',
  code: 'gateway_newcomers',
  heading: 'Many new visitors at the moment',
  sentence: 'This site is letting new visitors in one after the other. You have done nothing wrong.',
  metrics: {
    visitors: {
      name: 'floodgate_visitors_total',
      help: 'Admitted requests on routes of policies with newcomers, by whether the client is a regular.',
      inside: 'newcomer',
      outside: 'regular',
    },
    denied: {
      name: 'floodgate_newcomers_denied_total',
      help: 'Requests that limits for newcomers have denied, each once; in shadow mode, that they would have denied.',
    },
    actsFrom: {
      name: 'floodgate_newcomers_act_from_timestamp_seconds',
      help: 'From when a policy with newcomers denies anybody, while enough history does not exist; -1 if that is unknown; else 0.',
    },
  },
} as const satisfies GroupWords;

export const GROUPS = [NEWCOMERS] as const;

export type GroupKey = (typeof GROUPS)[number]['key'];
export type GroupCode = (typeof GROUPS)[number]['code'];
