import type { Bounds } from '#gateway/bounds/bounds.ts';
import { counter, gauge, type Sample } from '#gateway/observe/metrics/metrics.ts';

export function boundSamples(bounds: Bounds): Sample[] {
  return Object.values(bounds).flatMap((bound) => [
    gauge('floodgate_held', 'What clients hold at the moment.', bound.held, { bound: bound.name }),
    gauge('floodgate_held_max', 'What all clients together may hold.', bound.total, { bound: bound.name }),
    ...Object.entries(bound.refusals).map(([scope, value]) =>
      counter(
        'floodgate_bound_refusals_total',
        'What clients were refused, or lost, because a bound was reached.',
        value,
        {
          bound: bound.name,
          scope,
        },
      ),
    ),
  ]);
}
