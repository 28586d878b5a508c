import type { ListenerCore, PublicServer } from '#gateway/listen/server.ts';
import { optionalPart, type Surroundings } from '#gateway/part/part.ts';
import { authority } from '#shared/authority.ts';
import type { Millis } from '#shared/clock.ts';
import { DECISION_VARIABLES, readDecisionSettings } from './settings.ts';

export const decisionListener = optionalPart({
  variables: DECISION_VARIABLES,
  read(read, { trust, ports, reusePort }) {
    const settings = readDecisionSettings(read, trust, ports);
    if (settings === null) return null;
    return {
      async loader() {
        const { loadPredictable } = await import('./predictable-policies.ts');
        return loadPredictable;
      },
      open({ log }: Surroundings) {
        let listener: PublicServer | null = null;
        return {
          async start(core: ListenerCore) {
            const { openDecisionListener } = await import('./listener.ts');
            listener = await openDecisionListener(settings, core.server, log, core.reusePort);
          },
          samples: () => listener?.samples() ?? [],
          drain: async (deadlineMs: Millis) => listener?.drain(deadlineMs),
        };
      },
      async supervise() {
        if (!reusePort) {
          const { assertDecisionPortFree } = await import('./listener.ts');
          await assertDecisionPortFree(settings);
        }
        return {};
      },
      ready: () => `decisions on http://${authority(settings.host, settings.port)}`,
    };
  },
});
