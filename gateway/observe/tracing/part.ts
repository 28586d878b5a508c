import type { Tracing } from '#gateway/observe/trace.ts';
import { optionalPart } from '#gateway/part/part.ts';
import { OPENTELEMETRY_VARIABLES, readTracing, TRACING_VARIABLES } from './settings.ts';

export const tracing = optionalPart({
  name: 'tracing',
  variables: TRACING_VARIABLES,
  foreignVariables: OPENTELEMETRY_VARIABLES,
  read: readTracing,
  async open(settings, { gathered, clock, replica, log }) {
    const { OpenTelemetry } = await import('./open-telemetry.ts');
    const telemetry = new OpenTelemetry({
      settings,
      clock,
      replica,
      upstream: gathered.upstream,
      warn: (fields, message) => log.warn(fields, message),
    });
    const slots: { readonly tracing: Tracing } = { tracing: telemetry };
    return { slots, samples: () => telemetry.samples(), close: () => telemetry.close() };
  },
});
