/** A collector that takes spans over OTLP/HTTP as protobuf, and keeps them. */
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http';
import { createServer as createSecureServer, type ServerOptions } from 'node:https';
import { gunzipSync } from 'node:zlib';
import type { Owner } from './gateway.ts';
import { listen } from './listen.ts';
import { until } from './until.ts';

export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Id of the parent; '' if the span begins its trace. */
  readonly parentId: string;
  readonly traceState: string;
  readonly name: string;
  readonly kind: 'server' | 'client' | 'other';
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly events: readonly string[];
  readonly isError: boolean;
  readonly resource: Readonly<Record<string, unknown>>;
}

export interface Collector {
  /** The value for OTEL_EXPORTER_OTLP_ENDPOINT. */
  readonly origin: string;
  readonly spans: readonly CollectedSpan[];
  /** Path and headers of each batch. */
  readonly requests: readonly { readonly path: string; readonly headers: IncomingHttpHeaders }[];
  /** The status that it answers with; 0: it does not answer. */
  status: number;
  /** Resolves once there are this many spans. */
  spansOf(count: number): Promise<readonly CollectedSpan[]>;
}

/** @param tls null: it speaks plain HTTP */
export async function startCollector(owner: Owner, tls: ServerOptions | null = null): Promise<Collector> {
  const spans: CollectedSpan[] = [];
  const requests: { path: string; headers: IncomingHttpHeaders }[] = [];
  const listener: RequestListener = (req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      requests.push({ path: req.url ?? '', headers: req.headers });
      const body = Buffer.concat(chunks);
      if (collector.status === 200)
        spans.push(...spansIn(req.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body));
      if (collector.status !== 0)
        res.writeHead(collector.status, { 'content-type': 'application/x-protobuf' }).end();
    });
  };
  const server = tls === null ? createServer(listener) : createSecureServer(tls, listener);
  const port = await listen(owner, server);
  const collector: Collector = {
    origin: `${tls === null ? 'http' : 'https'}://127.0.0.1:${port}`,
    spans,
    requests,
    status: 200,
    async spansOf(count) {
      await until(() => spans.length >= count);
      return spans;
    },
  };
  return collector;
}

/** A field of a message is a number, or the bytes of a text or of a message. */
type Value = bigint | Buffer;

/** Returns values by the number of the field, in their order. */
function fieldsOf(bytes: Buffer): Map<number, Value[]> {
  const fields = new Map<number, Value[]>();
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes.readUInt8(at++);
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const take = (length: number): Buffer => {
    at += length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    const wire = tag & 7;
    let value: Value;
    if (wire === 0) value = varint();
    else if (wire === 1) value = take(8).readBigUInt64LE();
    else if (wire === 2) value = take(Number(varint()));
    else if (wire === 5) value = BigInt(take(4).readUInt32LE());
    else throw new Error(`there is no wire type ${wire}`);
    const number = tag >>> 3;
    fields.set(number, [...(fields.get(number) ?? []), value]);
  }
  return fields;
}

const bytesAt = (fields: Map<number, Value[]>, number: number): Buffer[] =>
  (fields.get(number) ?? []).filter((value) => typeof value !== 'bigint');
const numberAt = (fields: Map<number, Value[]>, number: number): bigint => {
  const [value] = fields.get(number) ?? [];
  return typeof value === 'bigint' ? value : 0n;
};
const textAt = (fields: Map<number, Value[]>, number: number, encoding: BufferEncoding = 'utf8'): string =>
  bytesAt(fields, number)[0]?.toString(encoding) ?? '';

/** Reads the spans of an ExportTraceServiceRequest. */
function spansIn(request: Buffer): CollectedSpan[] {
  return bytesAt(fieldsOf(request), 1).flatMap((resourceSpans) => {
    const fields = fieldsOf(resourceSpans);
    const [about = Buffer.alloc(0)] = bytesAt(fields, 1);
    const resource = attributesOf(bytesAt(fieldsOf(about), 1));
    return bytesAt(fields, 2).flatMap((scopeSpans) =>
      bytesAt(fieldsOf(scopeSpans), 2).map((span) => spanOf(fieldsOf(span), resource)),
    );
  });
}

function spanOf(fields: Map<number, Value[]>, resource: Readonly<Record<string, unknown>>): CollectedSpan {
  const [status = Buffer.alloc(0)] = bytesAt(fields, 15);
  const kind = numberAt(fields, 6);
  return {
    traceId: textAt(fields, 1, 'hex'),
    spanId: textAt(fields, 2, 'hex'),
    traceState: textAt(fields, 3),
    parentId: textAt(fields, 4, 'hex'),
    name: textAt(fields, 5),
    kind: kind === 2n ? 'server' : kind === 3n ? 'client' : 'other',
    startMs: Number(numberAt(fields, 7)) / 1e6,
    endMs: Number(numberAt(fields, 8)) / 1e6,
    attributes: attributesOf(bytesAt(fields, 9)),
    events: bytesAt(fields, 11).map((event) => textAt(fieldsOf(event), 2)),
    isError: numberAt(fieldsOf(status), 3) === 2n,
    resource,
  };
}

function attributesOf(pairs: readonly Buffer[]): Record<string, unknown> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const fields = fieldsOf(pair);
      return [textAt(fields, 1), readValue(bytesAt(fields, 2)[0] ?? Buffer.alloc(0))];
    }),
  );
}

/** Reads an AnyValue: a text, a whole number, or a list of them. */
function readValue(value: Buffer): unknown {
  const fields = fieldsOf(value);
  if (fields.has(1)) return textAt(fields, 1);
  if (fields.has(3)) return Number(numberAt(fields, 3));
  const [list] = bytesAt(fields, 5);
  return list === undefined ? null : bytesAt(fieldsOf(list), 1).map(readValue);
}
