/** Caddy's access log in its default encoding. It has all header fields, some of them redacted. */

import {
  documentIn,
  durationIn,
  type Fields,
  fieldsOf,
  HeaderList,
  numberOf,
  targetOf,
  textOf,
} from './fields.ts';
import type { LineReader } from './logged-request.ts';

const HOLDS_ALL = (): boolean => true;
const HOLDS_NOTHING = (): boolean => false;

export function caddyReader(): LineReader {
  return {
    format: 'caddy',
    read(line) {
      const fields = documentIn(line);
      const request = fields === null ? null : fieldsOf(fields.request);
      if (fields === null || request === null) return null;
      const endedAt = typeof fields.ts === 'number' ? fields.ts * 1000 : Date.parse(textOf(fields, 'ts'));
      const peer = textOf(request, 'remote_ip', 'remote_addr');
      const method = textOf(request, 'method');
      if (Number.isNaN(endedAt) || peer === '' || method === '') return null;
      const headers = fieldsOf(request.headers);
      const list = new HeaderList();
      for (const name in headers ?? {}) for (const value of valuesOf(headers, name)) list.add(name, value);
      return {
        at: Math.round(endedAt - numberOf(fields, 'duration') * 1000),
        method,
        target: targetOf(textOf(request, 'uri')),
        status: numberOf(fields, 'status'),
        durationMs: durationIn(fields, 'duration', 1000),
        digests: null,
        sender: {
          peer,
          client: textOf(request, 'client_ip') || peer,
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
