/** Traefik's access log with `format: json`. It has header fields if `fields.headers` keeps them. */

import {
  addressesOf,
  documentIn,
  durationIn,
  HeaderList,
  numberIn,
  numberOf,
  targetOf,
  textOf,
} from './fields.ts';
import type { LineReader } from './logged-request.ts';
import { timeOf } from './times.ts';

const HEADER = 'request_';

export function traefikReader(): LineReader {
  const seen = new Set<string>();
  const holds = (header: string): boolean => seen.has(header);
  return {
    format: 'traefik',
    read(line) {
      const fields = documentIn(line);
      if (fields === null) return null;
      const at = timeOf(fields.StartUTC ?? fields.StartLocal ?? fields.time);
      const peer = textOf(fields, 'ClientAddr', 'ClientHost');
      const host = textOf(fields, 'ClientHost');
      // Behind a proxy that Traefik trusts, ClientHost is the address in X-Forwarded-For.
      const addresses = addressesOf(peer, host === '' || host.includes(',') ? peer : host);
      const method = textOf(fields, 'RequestMethod');
      if (Number.isNaN(at) || addresses === null || method === '') return null;
      const list = new HeaderList();
      let forwardedFor = '';
      for (const key in fields) {
        if (!key.startsWith(HEADER)) continue;
        const name = key.slice(HEADER.length).toLowerCase();
        if (name === 'x-forwarded-for') forwardedFor = textOf(fields, key);
        if (seen.size < 1000) seen.add(name);
        list.add(name, fields[key]);
      }
      return {
        at,
        method,
        target: targetOf(textOf(fields, 'RequestPath')),
        status: numberOf(fields, 'DownstreamStatus'),
        bytes: numberIn(fields, 'DownstreamContentSize'),
        // The log has durations in nanoseconds.
        durationMs: durationIn(fields, 'Duration', 1e-6),
        digests: null,
        sender: {
          ...addresses,
          forwardedFor: forwardedFor === '' && !peer.includes(host) ? host : forwardedFor,
          headers: list.headers,
          concealed: list.concealed,
          holds,
        },
      };
    },
  };
}
