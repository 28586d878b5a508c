/** Kong: rate-limiting of consumers and of their groups, as limits of plans that bear the consumers' names. */
import { PLAN } from '#gateway/policy/overrides.ts';
import { SECONDS_OF } from './imported.ts';
import type { Tree } from './tree.ts';

type Refuse = (at: Tree, what: string, reason: string) => void;

const PLANS_MAX = 1000;

export class ConsumerLimits {
  readonly #refuse: Refuse;
  /** By unit, then by consumer: the limit, and the plugin that has it. */
  readonly #units = new Map<string, Map<string, { readonly limit: number; readonly plugin: Tree }>>();
  readonly #used = new Set<string>();
  /** Names of consumers, by their group. */
  readonly #members = new Map<string, string[]>();

  constructor(document: Tree, refuse: Refuse) {
    this.#refuse = refuse;
    const consumers = document.at('consumers').items();
    for (const consumer of consumers) {
      const name = nameOf(consumer);
      for (const group of consumer.at('groups').items()) {
        const key = group.at('name').text ?? group.text ?? '';
        this.#members.set(key, [...(this.#members.get(key) ?? []), name]);
      }
    }
    for (const group of document.at('consumer_groups').items()) {
      const members = this.#members.get(group.at('name').text ?? '') ?? [];
      for (const plugin of group.at('plugins').items()) this.#limit(plugin, members);
    }
    // After the groups: a consumer's own limit takes precedence.
    for (const consumer of consumers)
      for (const plugin of consumer.at('plugins').items()) this.#limit(plugin, [nameOf(consumer)]);
  }

  /** @param plugin of the file itself, which names a consumer or a group @param isEverywhere not of one route or service */
  add(plugin: Tree, isEverywhere: boolean): void {
    const consumer = plugin.at('consumer', 'username').text ?? plugin.at('consumer').text;
    const group = plugin.at('consumer_group', 'name').text ?? plugin.at('consumer_group').text ?? '';
    const names = consumer === null ? (this.#members.get(group) ?? []) : [consumer];
    if (isEverywhere) this.#limit(plugin, names);
    else
      this.#refuse(
        plugin,
        `rate-limiting of ${shown(names)}`,
        'it is of one route or service: write it as overrides of their policies',
      );
  }

  /** Limits of each consumer that has one for this unit. */
  of(unit: string): ReadonlyMap<string, number> {
    this.#used.add(unit);
    return new Map([...(this.#units.get(unit) ?? [])].map(([name, { limit }]) => [name, limit]));
  }

  /** Those that would change the limit of a policy, where there is none. */
  refuseUnused(): void {
    for (const [unit, limits] of this.#units) {
      if (this.#used.has(unit)) continue;
      for (const [name, { plugin }] of limits)
        this.#refuse(
          plugin,
          `${unit} of rate-limiting of consumer ${name}`,
          `no policy for everybody has a limit for each ${unit}`,
        );
    }
  }

  #limit(plugin: Tree, names: readonly string[]): void {
    if (plugin.at('name').text !== 'rate-limiting') return;
    const what = `rate-limiting of ${shown(names)}`;
    if (plugin.at('enabled').text === 'false') {
      this.#refuse(plugin, what, 'it is switched off (enabled: false)');
      return;
    }
    if (names.length === 0) this.#refuse(plugin, what, 'nobody in this file belongs to it');
    for (const unit of Object.keys(SECONDS_OF)) {
      const limit = plugin.at('config', unit).number;
      if (limit === null) continue;
      if (!Number.isSafeInteger(limit) || limit < 1) {
        this.#refuse(
          plugin,
          `${unit} of ${what}`,
          `a limit of ${limit} has no counterpart: it is at least 1`,
        );
        continue;
      }
      const limits = this.#units.get(unit) ?? new Map<string, { limit: number; plugin: Tree }>();
      this.#units.set(unit, limits);
      for (const name of names) {
        if (!PLAN.test(name))
          this.#refuse(plugin, what, `${name} is no name of a plan: it has letters, digits and ._~- only`);
        else if (limits.size >= PLANS_MAX && !limits.has(name))
          this.#refuse(plugin, what, `a policy has at most ${PLANS_MAX} overrides`);
        else limits.set(name, { limit, plugin });
      }
    }
  }
}

function nameOf(consumer: Tree): string {
  return consumer.at('username').text ?? consumer.at('custom_id').text ?? '';
}

function shown(names: readonly string[]): string {
  const [only, ...others] = names;
  if (only === undefined) return 'a group';
  return others.length === 0 ? `consumer ${only}` : `consumers ${names.join(', ')}`;
}
