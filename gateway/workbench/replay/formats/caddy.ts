/** Caddy's access log in its default encoding. It has all header fields, some of them redacted. */

import type { Millis } from '#shared/clock.ts';
import {
  addressesOf,
  documentIn,
  durationIn,
  type Fields,
  fieldsOf,
  HeaderList,
  numberIn,
  numberOf,
  targetOf,
  textOf,
} from './fields.ts';
import type { LineReader } from './logged-request.ts';
import { timeOf } from './times.ts';

const HOLDS_ALL = (): boolean => true;
const HOLDS_NOTHING = (): boolean => false;

/** Durations are seconds, or whole nanoseconds with `duration_format nano`. No request takes 10,000 s. */
const NANOSECONDS_MIN = 10_000;

function unitOf(duration: unknown): Millis {
  return typeof duration === 'number' && duration >= NANOSECONDS_MIN ? 1e-6 : 1000;
}

export function caddyReader(): LineReader {
  return {
    format: 'caddy',
    read(line) {
      const fields = documentIn(line);
      const request = fields === null ? null : fieldsOf(fields.request);
      if (fields === null || request === null) return null;
      const endedAt = timeOf(fields.ts);
      const peer = textOf(request, 'remote_ip', 'remote_addr');
      const addresses = addressesOf(peer, textOf(request, 'client_ip') || peer);
      const method = textOf(request, 'method');
      if (Number.isNaN(endedAt) || addresses === null || method === '') return null;
      const durationMs = durationIn(fields, 'duration', unitOf(fields.duration));
      const headers = fieldsOf(request.headers);
      const list = new HeaderList();
      for (const name in headers ?? {}) for (const value of valuesOf(headers, name)) list.add(name, value);
      return {
        at: Math.round(endedAt - (durationMs ?? 0)),
        method,
        target: targetOf(textOf(request, 'uri')),
        status: numberOf(fields, 'status'),
        bytes: numberIn(fields, 'size'),
        durationMs,
        digests: null,
        sender: {
          ...addresses,
          forwardedFor: valuesOf(headers, 'X-Forwarded-For').join(', '),
          headers: list.headers,
          concealed: list.concealed,
          holds: headers === null ? HOLDS_NOTHING : HOLDS_ALL,
        },
      };
    },
  };
}

function valuesOf(headers: Fields | null, name: string): readonly unknown[] {
  const values = headers?.[name];
  return Array.isArray(values) ? values : [];
}
