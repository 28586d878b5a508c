/** Envoy's access log as JSON, with the field names of Envoy Gateway and Istio. */

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

/** @param headers maps lower-case header names to the fields of a line */
export function envoyReader(headers: ReadonlyMap<string, string>): LineReader {
  const holds = (header: string): boolean => headers.has(header);
  return {
    format: 'envoy',
    read(line) {
      const fields = documentIn(line);
      if (fields === null) return null;
      const at = timeOf(fields.start_time);
      const client = textOf(fields, 'downstream_remote_address');
      const addresses = addressesOf(textOf(fields, 'downstream_direct_remote_address') || client, client);
      const method = textOf(fields, 'method');
      if (Number.isNaN(at) || addresses === null || method === '') return null;
      const list = new HeaderList();
      for (const [header, field] of headers) list.add(header, textOf(fields, field) || undefined);
      return {
        at,
        method,
        target: targetOf(textOf(fields, 'x-envoy-origin-path', 'x-envoy-original-path', 'path')),
        status: numberOf(fields, 'response_code'),
        bytes: numberIn(fields, 'bytes_sent'),
        durationMs: durationIn(fields, 'duration', 1),
        digests: null,
        sender: {
          ...addresses,
          forwardedFor: textOf(fields, 'x-forwarded-for', 'x_forwarded_for'),
          headers: list.headers,
          concealed: list.concealed,
          holds,
        },
      };
    },
  };
}
