/**
 * Redis Cluster: each call goes to the primary that serves its keys' slot.
 *
 * The slot table is fetched every second, from the ready nodes in turn, and at once after a MOVED reply or a change of
 * a connection. Nodes are connected as long as the table or a reply names them; nodes of the configured address always.
 * A call is repeated only after a reply that proves it was not executed (MOVED, ASK). If a primary is gone, calls for
 * its slots reject at once and all others continue.
 */
import type { Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import type { StoreTls } from './access.ts';
import { type AddressOf, type Endpoint, endpointName } from './address.ts';
import type { ConnectionOptions, StoreConnection } from './connection.ts';
import { faultOf, StoreFault } from './fault.ts';
import { RedisNode } from './node.ts';
import { keySlot, redirectionOf, SLOTS, type SlotRange, slotRanges } from './slot-table.ts';

const REFRESH_EVERY_MS: Millis = 1000;
const REFRESH_MS_MAX: Millis = 500;
const REDIRECTIONS_MAX = 3;
/** Time limit for connecting to a node that a redirection names. */
const REDIRECT_MS_MAX: Millis = 200;

interface Member {
  readonly endpoint: Endpoint;
  readonly node: RedisNode;
  isNamed: boolean;
}

type Call = Parameters<StoreConnection['run']>;

export class ClusterConnection implements StoreConnection {
  readonly #address: AddressOf<'cluster'>;
  readonly #tls: StoreTls | null;
  readonly #options: ConnectionOptions;
  readonly #members = new Map<string, Member>();
  readonly #seeds = new Set<Member>();
  readonly #primaryBySlot: (Member | undefined)[] = new Array(SLOTS).fill(undefined);
  #primaries: ReadonlySet<Member> = new Set();
  ready = false;
  #closed = false;
  #timer: NodeJS.Timeout | undefined;
  #refreshing: Promise<void> | null = null;
  /** Counts refreshes, so that nodes are asked in turn. */
  #turn = 0;
  #tableFault = new StoreFault('disconnected', 'the table of slots is not known yet');

  constructor(address: AddressOf<'cluster'>, tls: StoreTls | null, options: ConnectionOptions) {
    this.#tls = tls;
    this.#address = address;
    this.#options = options;
  }

  whyDown(): StoreFault {
    const expected = this.#primaries.size > 0 ? this.#primaries : this.#seeds;
    for (const { node } of expected) if (!node.ready) return node.whyDown();
    return this.#tableFault;
  }

  slotOf(key: string): number {
    return keySlot(key);
  }

  run(...call: Call): Promise<unknown> {
    const [, keys] = call;
    const slot = keySlot(keys[0] ?? '');
    const member = this.#primaryBySlot[slot];
    if (member === undefined) {
      return Promise.reject(
        new StoreFault('disconnected', `no node of the cluster serves slot ${slot}`, this.whyDown()),
      );
    }
    return member.node
      .run(...call)
      .catch((fault: StoreFault) => this.#follow(fault, member, call, REDIRECTIONS_MAX));
  }

  async connect(): Promise<void> {
    for (const seed of this.#address.seeds) this.#seeds.add(this.#member(seed));
    this.#timer = setInterval(() => this.#refresh(), REFRESH_EVERY_MS);
    this.#timer.unref();
    await Promise.any([...this.#seeds].map(({ node }) => node.whenReady())).catch(() => {
      throw this.whyDown();
    });
    await this.#refresh();
    await Promise.allSettled([...this.#primaries].map(({ node }) => node.whenReady()));
    if (!this.ready) throw this.whyDown();
  }

  close(): void {
    this.#closed = true;
    this.ready = false;
    clearInterval(this.#timer);
    for (const { node } of this.#members.values()) node.close();
  }

  async #follow(fault: StoreFault, from: Member, call: Call, left: number): Promise<unknown> {
    const answer = fault.cause instanceof Error ? fault.cause.message : '';
    const redirection = redirectionOf(answer, from.endpoint.host);
    if (redirection === null || left === 0 || this.#closed) throw fault;
    const { kind, slot, endpoint } = redirection;
    const to = this.#member(endpoint);
    to.isNamed = true;
    if (kind === 'moved') {
      this.#primaryBySlot[slot] = to;
      this.#refresh();
    }
    await within(REDIRECT_MS_MAX, to.node.whenReady()).catch(() => {
      throw to.node.whyDown();
    });
    const again = kind === 'moved' ? to.node.run(...call) : to.node.runAsking(...call);
    return again.catch((next: StoreFault) => this.#follow(next, to, call, left - 1));
  }

  /** Fetches the slot table. Never rejects; `whyDown` has the reason of a failure. */
  #refresh(): Promise<void> {
    this.#refreshing ??= this.#askForTable().finally(() => {
      this.#refreshing = null;
    });
    return this.#refreshing;
  }

  async #askForTable(): Promise<void> {
    const ready = [...this.#members.values()].filter(({ node }) => node.ready);
    const first = this.#turn++;
    let best: readonly SlotRange[] = [];
    for (let i = 0; i < ready.length; i++) {
      const { node, endpoint } = ready[(first + i) % ready.length] as Member;
      try {
        const ranges = slotRanges(await within(REFRESH_MS_MAX, node.ask('CLUSTER', 'SLOTS')), endpoint.host);
        if (this.#closed) return;
        const slots = slotCount(ranges);
        if (slots === SLOTS) return this.#adopt(ranges);
        // A node that has just restarted may know only part of the table.
        if (slots > slotCount(best)) best = ranges;
        if (slots === 0)
          this.#tableFault = faultOf(new Error('CLUSTERDOWN no slots are assigned'), endpointName(endpoint));
      } catch (error) {
        this.#tableFault = faultOf(error, endpointName(endpoint));
      }
    }
    if (best.length > 0 && !this.#closed) this.#adopt(best);
  }

  #adopt(ranges: readonly SlotRange[]): void {
    const primaries = new Set<Member>();
    this.#primaryBySlot.fill(undefined);
    for (const { first, last, primary } of ranges) {
      const member = this.#member(primary);
      primaries.add(member);
      this.#primaryBySlot.fill(member, first, last + 1);
    }
    this.#primaries = primaries;
    for (const [name, member] of this.#members) {
      if (!primaries.has(member) && !this.#seeds.has(member) && !member.isNamed) {
        this.#members.delete(name);
        member.node.close();
      }
      member.isNamed = false;
    }
    this.#update();
  }

  #member(endpoint: Endpoint): Member {
    const name = endpointName(endpoint);
    const known = this.#members.get(name);
    if (known !== undefined) return known;
    const { username, password } = this.#address;
    const { silenceMs } = this.#options;
    const node = new RedisNode({
      locate: () => endpoint,
      expects: 'cluster-node',
      database: 0,
      username,
      password,
      tls: this.#tls,
      silenceMs,
      onChange: () => {
        if (this.#closed) return;
        this.#update();
        this.#refresh();
      },
    });
    const member: Member = { endpoint, node, isNamed: false };
    this.#members.set(name, member);
    node.start();
    return member;
  }

  #update(): void {
    const ready = [...this.#primaries].some(({ node }) => node.ready);
    if (ready === this.ready) return;
    this.ready = ready;
    this.#options.onChange(ready);
  }
}

function slotCount(ranges: readonly SlotRange[]): number {
  return ranges.reduce((sum, { first, last }) => sum + last - first + 1, 0);
}
