import { PRIORITIES } from '#gateway/bounds/priority.ts';
import { optionalPart, type Surroundings } from '#gateway/part/part.ts';
import { counter, gauge, type Sample } from '#gateway/part/sample.ts';
import type { OpenProtection, ProtectedBound } from '#gateway/proxy/protected.ts';
import { onceAMinute } from '#shared/once-a-minute.ts';
import { Protection } from './protection.ts';

/** The label of a call by its lane: newcomers go behind the others. */
const CLIENTS = { regular: 'front', newcomer: 'back' } as const;

/** The policy file switches it on with `protect`. */
export const protection = optionalPart({
  variables: [],
  read: () => ({ open: openPart }),
});

function openPart({ clock, log }: Surroundings) {
  const onOverload = onceAMinute(clock, (limit: number) =>
    log.warn({ limit }, 'the application replies slowly; requests beyond the limit of protect are refused'),
  );
  let opened: { readonly protection: Protection; readonly bound: ProtectedBound } | null = null;
  const openProtection: OpenProtection = (bound) => {
    opened = { bound, protection: new Protection({ ...bound, onOverload }) };
    return opened.protection;
  };
  const slots: { readonly openProtection: OpenProtection } = { openProtection };
  return {
    slots,
    samples: () =>
      opened === null || opened.protection.isClosed ? [] : samplesOf(opened.protection, opened.bound),
  };
}

function samplesOf({ mode, limit, refused }: Protection, { waitingIn }: ProtectedBound): Sample[] {
  return [
    gauge('floodgate_protect_limit', 'The adaptive limit of requests in progress at the application.', limit),
    ...PRIORITIES.flatMap((priority) =>
      Object.entries(CLIENTS).flatMap(([client, lane]) => [
        gauge(
          'floodgate_protect_waiting',
          'Requests that wait for a place.',
          waitingIn({ priority, isBehind: lane === 'back' }),
          { priority, client },
        ),
        counter(
          'floodgate_protect_refused_total',
          'Requests refused to protect the application; in shadow mode, those that arrived at the limit.',
          refused[lane][priority],
          { priority, client, mode },
        ),
      ]),
    ),
  ];
}
