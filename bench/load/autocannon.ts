/** autocannon, where wrk is not installed: dearer itself, so it takes more from the core it shares. */
import autocannon from 'autocannon';
import { CONNECTIONS } from '../scenarios.ts';
import { bodyOf, type Driver, keyOf } from './load.ts';

export const viaAutocannon: Driver = async (port, scenario, seconds) => {
  const body = bodyOf(scenario);
  const headers = body === '' ? {} : { 'content-type': 'application/json' };
  const anyKey = (): string => keyOf(1 + Math.floor(Math.random() * scenario.keys));
  const result = await autocannon({
    url: `http://127.0.0.1:${port}`,
    connections: CONNECTIONS,
    duration: seconds,
    requests: [
      {
        method: scenario.method,
        path: scenario.path,
        headers,
        ...(body === '' ? {} : { body }),
        ...(scenario.keys === 0
          ? {}
          : { setupRequest: (request) => ({ ...request, headers: { ...headers, 'x-api-key': anyKey() } }) }),
      },
    ],
  });
  return {
    requests: result.requests.total,
    seconds: result.duration,
    refused: result.non2xx,
    errors: result.errors + result.timeouts,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
  };
};
