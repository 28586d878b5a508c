import type { PublicServerOptions } from '#gateway/listen/server.ts';
import { type OpenPart, optionalPart } from '#gateway/part/part.ts';
import { authority } from '#shared/authority.ts';
import type { DecisionListeners } from './listeners.ts';
import { DECISION_VARIABLES, readDecisionSettings } from './settings.ts';

interface ListenerCore {
  readonly server: PublicServerOptions;
  readonly reusePort: boolean;
}

export const decisionListener = optionalPart({
  name: 'decision listener',
  variables: DECISION_VARIABLES,
  read: (read, { trust, ports }) => readDecisionSettings(read, trust, ports),
  async loader() {
    const { loadPredictable } = await import('./predictable-policies.ts');
    return loadPredictable;
  },
  open(settings, { log }): OpenPart<object, ListenerCore> {
    let listeners: DecisionListeners | null = null;
    return {
      async listen({ server, reusePort }) {
        const { openDecisionListeners } = await import('./listeners.ts');
        listeners = await openDecisionListeners(settings, server, log);
        await listeners.listen(reusePort);
      },
      samples: () => listeners?.http?.samples() ?? [],
      drain: async (deadlineMs) => listeners?.drain(deadlineMs),
    };
  },
  async supervise(settings, { gathered }) {
    if (!gathered.reusePort) {
      const { assertDecisionPortsFree } = await import('./listeners.ts');
      await assertDecisionPortsFree(settings);
    }
    return {};
  },
  ready({ host, port, grpcPort }) {
    const http = port === null ? [] : [`decisions on http://${authority(host, port)}`];
    const grpc = grpcPort === null ? [] : [`decisions over gRPC on ${authority(host, grpcPort)}`];
    return [...http, ...grpc].join(', ');
  },
});
