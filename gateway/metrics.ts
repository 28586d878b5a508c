/**
 * What the gateway did, as plain numbers: the data plane only increments, `/metrics` turns them into Prometheus text
 * (exposition format 0.0.4). Policies are labels; identities never are.
 */
import type { Policy } from '#gateway/policy/policy.ts';

export type Outcome =
  /** Nothing covers the request. */
  | 'uncovered'
  | 'allowed'
  | 'denied'
  /** Refused because the store is away and a policy says deny. */
  | 'unavailable'
  | 'malformed';

export interface Sample {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge';
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

interface PolicyCounts {
  allowed: number;
  denied: number;
  shadowDenied: number;
}

export class Metrics {
  readonly #outcomes: Record<Outcome, number> = {
    uncovered: 0,
    allowed: 0,
    denied: 0,
    unavailable: 0,
    malformed: 0,
  };
  /** By name, so that counts survive a reload; bounded by what policy files ever named. */
  readonly #policies = new Map<string, PolicyCounts>();
  /** Of the denied ones: without asking the store, because this process knew the bucket to be exhausted. */
  deniedFromMemory = 0;
  untrustedChains = 0;
  reloads = 0;
  reloadFailures = 0;

  count(outcome: Outcome): void {
    this.#outcomes[outcome]++;
  }

  allowed(policy: Policy): void {
    this.#of(policy).allowed++;
  }

  denied(policy: Policy): void {
    this.#of(policy).denied++;
  }

  shadowDenied(policy: Policy): void {
    this.#of(policy).shadowDenied++;
  }

  samples(): Sample[] {
    const samples: Sample[] = Object.entries(this.#outcomes).map(([outcome, value]) => ({
      name: 'floodgate_requests_total',
      help: 'Requests by what the gateway did with them.',
      type: 'counter',
      labels: { outcome },
      value,
    }));
    for (const [policy, counts] of this.#policies) {
      for (const [decision, value] of Object.entries(counts)) {
        samples.push({
          name: 'floodgate_policy_decisions_total',
          help: 'Decisions by policy; shadowDenied would have been denied.',
          type: 'counter',
          labels: { policy, decision },
          value,
        });
      }
    }
    samples.push(
      counter(
        'floodgate_untrusted_chains_total',
        'Requests whose X-Forwarded-For chain could not be read.',
        this.untrustedChains,
      ),
      counter('floodgate_policy_reloads_total', 'Policy files taken into use after start.', this.reloads),
      counter(
        'floodgate_policy_reload_failures_total',
        'Policy files refused; the old table stayed.',
        this.reloadFailures,
      ),
    );
    return samples;
  }

  #of(policy: Policy): PolicyCounts {
    let counts = this.#policies.get(policy.name);
    if (counts === undefined) {
      counts = { allowed: 0, denied: 0, shadowDenied: 0 };
      this.#policies.set(policy.name, counts);
    }
    return counts;
  }
}

export function counter(
  name: string,
  help: string,
  value: number,
  labels: Record<string, string> = {},
): Sample {
  return { name, help, type: 'counter', labels, value };
}

export function gauge(
  name: string,
  help: string,
  value: number,
  labels: Record<string, string> = {},
): Sample {
  return { name, help, type: 'gauge', labels, value };
}

/** Samples of several processes with the same name and labels become their sum. */
export function sum(samples: Iterable<Sample>): Sample[] {
  const merged = new Map<string, Sample>();
  for (const sample of samples) {
    const key = `${sample.name}${labelText(sample.labels)}`;
    const known = merged.get(key);
    merged.set(key, known === undefined ? sample : { ...known, value: known.value + sample.value });
  }
  return [...merged.values()];
}

export function exposition(samples: readonly Sample[]): string {
  const byName = Map.groupBy(samples, (sample) => sample.name);
  let text = '';
  for (const [name, group] of byName) {
    text += `# HELP ${name} ${group[0]?.help}\n# TYPE ${name} ${group[0]?.type}\n`;
    for (const { labels, value } of group) text += `${name}${labelText(labels)} ${value}\n`;
  }
  return text;
}

function labelText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(
    ([key, value]) =>
      `${key}="${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')}"`,
  );
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}
