/** Kong: rate-limiting of consumers and of their groups, as limits of plans named after the consumers. */
import { PLAN } from '#gateway/policy/overrides.ts';
import { type Imported, limitPer, UNITS } from './imported.ts';
import type { Tree } from './tree.ts';

const PLANS_MAX = 1000;

export class ConsumerLimits {
  readonly #imported: Imported;
  /** Limits by unit and consumer. */
  readonly #units = new Map<string, Map<string, { readonly limit: number; readonly plugin: Tree }>>();
  readonly #used = new Set<string>();
  /** Names of the consumers of each group. */
  readonly #members = new Map<string, string[]>();

  constructor(document: Tree, imported: Imported) {
    this.#imported = imported;
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
    // Read consumers after groups, because a consumer's own limit takes precedence.
    for (const consumer of consumers)
      for (const plugin of consumer.at('plugins').items()) this.#limit(plugin, [nameOf(consumer)]);
  }

  /**
   * @param plugin a plugin at the top of the file, for a consumer or a group
   * @param isEverywhere whether it is not limited to a route or service
   */
  add(plugin: Tree, isEverywhere: boolean): void {
    const consumer = plugin.at('consumer', 'username').text ?? plugin.at('consumer').text;
    const group = plugin.at('consumer_group', 'name').text ?? plugin.at('consumer_group').text ?? '';
    const names = consumer === null ? (this.#members.get(group) ?? []) : [consumer];
    if (isEverywhere) this.#limit(plugin, names);
    else
      this.#imported.refuse(
        plugin,
        `rate-limiting of ${shown(names)}`,
        'it is of one route or service: write it as overrides of their policies',
      );
  }

  /** Returns the limit of each consumer for this unit, if it has one. */
  of(unit: string): ReadonlyMap<string, number> {
    this.#used.add(unit);
    return new Map([...(this.#units.get(unit) ?? [])].map(([name, { limit }]) => [name, limit]));
  }

  /** Reports limits for units that no policy uses. */
  refuseUnused(): void {
    for (const [unit, limits] of this.#units) {
      if (this.#used.has(unit)) continue;
      for (const [name, { plugin }] of limits)
        this.#imported.refuse(
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
      this.#imported.refuse(plugin, what, 'it is switched off (enabled: false)');
      return;
    }
    if (names.length === 0) this.#imported.refuse(plugin, what, 'no consumer in this file belongs to it');
    for (const unit of UNITS) {
      const value = plugin.at('config', unit).number;
      if (value === null) continue;
      const read = limitPer(unit, value, '');
      if (typeof read === 'string') {
        this.#imported.refuse(plugin, `${unit} of ${what}`, read);
        continue;
      }
      const { limit } = read;
      const limits = this.#units.get(unit) ?? new Map<string, { limit: number; plugin: Tree }>();
      this.#units.set(unit, limits);
      for (const name of names) {
        if (!PLAN.test(name))
          this.#imported.refuse(
            plugin,
            what,
            `${name} is not the name of a plan: it has letters, digits and ._~- only`,
          );
        else if (limits.size >= PLANS_MAX && !limits.has(name))
          this.#imported.refuse(plugin, what, `a policy has at most ${PLANS_MAX} overrides`);
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
