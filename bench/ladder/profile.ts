/** Divides the CPU time of a process between the steps of a request, by a profile that Node has written. */

/** The part of V8's `.cpuprofile` that counts. */
export interface Profile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string };
    readonly children?: readonly number[];
  }[];
  /** Ids of the nodes that ran, oldest first. */
  readonly samples: readonly number[];
}

/** The first step whose pattern fits the place of a function. The place of native code is its name. */
export const PLACES: readonly (readonly [title: string, places: RegExp])[] = [
  ['the kernel writes', /^write(?:v|Buffer|\w+String)$/],
  ['the kernel reads, and the event loop', /^\(program\)$/],
  ['node:net and its streams', /^node:(?:net$|internal\/stream)/],
  ['garbage collector', /^\(garbage collector\)$/],
  ['our parser', /gateway\/(?:listen\/plain\/plain-request|http\/header-fields)/],
  ['our connection and response', /gateway\/(?:listen|bounds)\//],
  ['text and headers', /gateway\/(?:reply\/|http\/(?:shared|date)|refusals\/(?:refusal|reason|limit))/],
  ['match and identify', /gateway\/(?:http|policy|identity|request\/reading)\//],
  ['the decision', /gateway\/(?:limiter|algorithms)\//],
  ['record, log, metrics', /gateway\/(?:refusals|observers?|observe|addresses|bans)\//],
  ['the order of the steps', /gateway\/request\//],
  ['the store', /gateway\/store\//],
  ['the upstream', /gateway\/proxy\//],
];

const IDLE = '(idle)';
const OTHER = 'other';
export const STEPS: readonly string[] = [...PLACES.map(([title]) => title), OTHER];

/**
 * Only the second half counts, when everything is compiled. A function without a step belongs to the step that called
 * it. The time between two samples is not counted, because it includes what other processes took.
 *
 * @returns the share of the CPU time of each step
 */
export function sharesOf({ nodes, samples }: Profile): ReadonlyMap<string, number> {
  const steps = new Map<number, string>();
  // A node comes before its children.
  for (const { id, callFrame, children = [] } of nodes) {
    const place = callFrame.url === '' ? callFrame.functionName : callFrame.url;
    const step = PLACES.find(([, places]) => places.test(place))?.[0] ?? steps.get(id) ?? OTHER;
    steps.set(id, place === IDLE ? IDLE : step);
    for (const child of children) steps.set(child, step);
  }
  const ran = samples.slice(samples.length / 2).map((id) => steps.get(id) ?? OTHER);
  const busy = ran.filter((step) => step !== IDLE);
  const shares = new Map<string, number>();
  for (const step of busy) shares.set(step, (shares.get(step) ?? 0) + 1 / busy.length);
  return shares;
}
