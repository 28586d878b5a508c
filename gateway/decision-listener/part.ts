import type { PublicServerOptions } from '#gateway/listen/server.ts';
import { optionalPart, type Surroundings } from '#gateway/part/part.ts';
import { authority } from '#shared/authority.ts';
import type { Millis } from '#shared/clock.ts';
import type { DecisionListeners } from './listeners.ts';
import { DECISION_VARIABLES, readDecisionSettings } from './settings.ts';

interface ListenerCore {
  readonly server: PublicServerOptions;
  readonly reusePort: boolean;
}

export const decisionListener = optionalPart({
  variables: DECISION_VARIABLES,
  read(read, { trust, ports, reusePort }) {
    const settings = readDecisionSettings(read, trust, ports);
    if (settings === null) return null;
    const { host, port, grpcPort } = settings;
    return {
      async loader() {
        const { loadPredictable } = await import('./predictable-policies.ts');
        return loadPredictable;
      },
      open({ log }: Surroundings) {
        let listeners: DecisionListeners | null = null;
        return {
          async listen(core: ListenerCore) {
            const { openDecisionListeners } = await import('./listeners.ts');
            listeners = await openDecisionListeners(settings, core.server, log);
            await listeners.listen(core.reusePort);
          },
          samples: () => listeners?.http?.samples() ?? [],
          drain: async (deadlineMs: Millis) => listeners?.drain(deadlineMs),
        };
      },
      async supervise() {
        if (!reusePort) {
          const { assertDecisionPortsFree } = await import('./listeners.ts');
          await assertDecisionPortsFree(settings);
        }
        return {};
      },
      ready() {
        const http = port === null ? [] : [`decisions on http://${authority(host, port)}`];
        const grpc = grpcPort === null ? [] : [`decisions over gRPC on ${authority(host, grpcPort)}`];
        return [...http, ...grpc].join(', ');
      },
    };
  },
});
