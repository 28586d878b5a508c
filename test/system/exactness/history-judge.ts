/**
 * Judges a history of requests that several gateways decided. It knows only what a client and the application see, and
 * the formula of docs/policies-in-detail.md. It imports nothing, so no mistake of the limiter can hide in it.
 *
 * The gateway decided a request at some time between `sentMs` and `doneMs`. So a rule is broken only if it is broken
 * whichever of these times is taken.
 */

export interface Call {
  readonly id: string;
  readonly policy: string;
  readonly client: string;
  readonly sentMs: number;
  readonly doneMs: number;
  /** Whether the reply was the application's. Otherwise it was a 429. */
  readonly isAdmitted: boolean;
}

export interface Rule {
  /** `fixed` windows begin at multiples of their length on the clock. A `bucket` drains evenly within its window. */
  readonly kind: 'fixed' | 'bucket';
  readonly limit: number;
  readonly windowMs: number;
}

/** A time without the store, with some room at both ends. */
export interface Outage {
  readonly fromMs: number;
  readonly toMs: number;
  readonly hasLostData: boolean;
}

export interface History {
  readonly rules: ReadonlyMap<string, Rule>;
  readonly gateways: number;
  readonly outages: readonly Outage[];
  readonly calls: readonly Call[];
  /** How often the application received each request, by id. */
  readonly received: ReadonlyMap<string, number>;
}

/** The clocks of two processes differ by less than this. */
const MARGIN_MS = 20;

/** Returns everything that is wrong, in words; nothing if the history is right. */
export function faultsOf(history: History): string[] {
  const faults = deliveryFaults(history);
  const groups = Map.groupBy(history.calls, ({ policy, client }) => `${policy} of ${client}`);
  for (const [name, calls] of groups) {
    const rule = history.rules.get(calls[0]?.policy ?? '');
    if (rule === undefined) faults.push(`${name}: there is no such policy`);
    else faults.push(...overFaults(name, calls, rule, history), ...earlyFaults(name, calls, rule, history));
  }
  return faults;
}

/** Each admitted request reaches the application once, and each refused one never. */
function deliveryFaults({ calls, received }: History): string[] {
  const faults = calls.flatMap(({ id, isAdmitted }) => {
    const times = received.get(id) ?? 0;
    return times === (isAdmitted ? 1 : 0)
      ? []
      : [`${id}: ${isAdmitted ? 'admitted' : 'refused'}, and received ${times} times`];
  });
  const known = new Set(calls.map(({ id }) => id));
  if (known.size !== calls.length) faults.push('two requests have the same id');
  for (const id of received.keys()) if (!known.has(id)) faults.push(`${id}: received, but never sent`);
  return faults;
}

/** More requests than the limit, in a fixed window or in any span of a bucket. */
function overFaults(name: string, calls: readonly Call[], rule: Rule, history: History): string[] {
  const admitted = calls.filter(({ isAdmitted }) => isAdmitted);
  const spans =
    rule.kind === 'fixed'
      ? Map.groupBy(admitted, ({ sentMs }) => windowOf(sentMs, rule))
          .entries()
          .map(([start, inWindow]) => ({
            fromMs: Math.min(...inWindow.map(({ sentMs }) => sentMs)),
            toMs: Math.min(start + rule.windowMs, Math.max(...inWindow.map(({ doneMs }) => doneMs))),
          }))
          .toArray()
      : admitted.flatMap(({ sentMs }) =>
          admitted
            .filter((last) => last.doneMs >= sentMs)
            .map(({ doneMs }) => ({ fromMs: sentMs, toMs: doneMs })),
        );
  return spans.flatMap(({ fromMs, toMs }) => {
    const within = admitted.filter(({ sentMs, doneMs }) => sentMs >= fromMs && doneMs <= toMs).length;
    const most = mostIn(fromMs, toMs, rule, history);
    return within <= most
      ? []
      : [`${name}: ${within} admitted from ${fromMs} to ${toMs}, at most ${most} may be`];
  });
}

/** The maximum by the formula of docs/policies-in-detail.md, and for a bucket what drains meanwhile. */
function mostIn(
  fromMs: number,
  toMs: number,
  { kind, limit, windowMs }: Rule,
  { outages, gateways }: History,
): number {
  // A bucket loses what an outage added to it within its window.
  const sinceMs = kind === 'bucket' ? fromMs - windowMs : fromMs;
  const hit = outages.filter((outage) => outage.fromMs <= toMs && outage.toMs >= sinceMs);
  const losses = hit.filter(({ hasLostData }) => hasLostData).length;
  const alone = hit.length === 0 ? 0 : limit - Math.floor(limit / gateways);
  const most = limit * (1 + losses) + alone;
  if (kind === 'fixed') return most;
  // In an outage, the store and a gateway may both drain the same requests.
  const rate = (hit.length === 0 ? 1 : 2) * (limit / windowMs);
  return Math.floor(most + rate * (toMs - fromMs + MARGIN_MS));
}

/** A refusal although the limit was not used up. In an outage each gateway has only its share, so none is judged. */
function earlyFaults(name: string, calls: readonly Call[], rule: Rule, { outages }: History): string[] {
  const firstMs = Math.min(...calls.map(({ sentMs }) => sentMs));
  return calls.flatMap((refused) => {
    if (refused.isAdmitted) return [];
    const { sentMs, doneMs, id } = refused;
    // The request was decided in a window that begins in this time.
    const sinceMs = rule.kind === 'bucket' ? sentMs - rule.windowMs : windowOf(sentMs - MARGIN_MS, rule);
    // An outage before the first request of the client has changed nothing of its counter.
    const hit = outages.some(({ fromMs, toMs }) => fromMs <= doneMs && toMs >= Math.max(sinceMs, firstMs));
    if (hit) return [];
    const used = calls.filter(
      (other) => other.isAdmitted && other.sentMs <= doneMs && other.doneMs >= sinceMs - MARGIN_MS,
    ).length;
    return used >= rule.limit ? [] : [`${id}, ${name}: refused with ${used} of ${rule.limit} used`];
  });
}

function windowOf(ms: number, { windowMs }: Rule): number {
  return Math.floor(ms / windowMs) * windowMs;
}
