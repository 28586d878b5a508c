import type { Tracing } from '#gateway/observe/trace.ts';
import { optionalPart, type Surroundings } from '#gateway/part/part.ts';
import { OPENTELEMETRY_VARIABLES, readTracing, TRACING_VARIABLES } from './settings.ts';

export const tracing = optionalPart({
  variables: TRACING_VARIABLES,
  foreignVariables: OPENTELEMETRY_VARIABLES,
  read(read, { upstream }) {
    const settings = readTracing(read);
    if (settings === null) return null;
    return {
      async open({ clock, replica, log }: Surroundings) {
        const { OpenTelemetry } = await import('./open-telemetry.ts');
        const warn = (fields: object, message: string): void => log.warn(fields, message);
        const telemetry = new OpenTelemetry({ settings, clock, replica, upstream, warn });
        const slots: { readonly tracing: Tracing } = { tracing: telemetry };
        return { slots, samples: () => telemetry.samples(), close: () => telemetry.close() };
      },
    };
  },
});
