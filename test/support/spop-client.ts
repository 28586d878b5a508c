/** HAProxy's side of SPOP, by its doc/SPOE.txt. It shares no code with the agent. */
import { connect, type Socket } from 'node:net';
import type { Owner } from './gateway.ts';
import { until } from './until.ts';

/** An IP address has 4 or 16 bytes. */
export interface Address {
  readonly bytes: readonly number[];
}

export type Item = string | number | boolean | Buffer | Address | null;

/** Lengths and ids, in the encoding of HAProxy's peers. */
export function varint(value: bigint | number): Buffer {
  let rest = BigInt(value);
  if (rest < 240n) return Buffer.from([Number(rest)]);
  const bytes = [Number(rest & 15n) | 240];
  rest = (rest - 240n) >> 4n;
  for (; rest >= 128n; rest = (rest - 128n) >> 7n) bytes.push(Number(rest & 127n) | 128);
  return Buffer.from([...bytes, Number(rest)]);
}

export function text(value: string | Buffer): Buffer {
  const bytes = Buffer.from(value as string);
  return Buffer.concat([varint(bytes.length), bytes]);
}

export function item(value: Item): Buffer {
  if (value === null) return Buffer.from([0]);
  if (typeof value === 'boolean') return Buffer.from([value ? 0x11 : 0x01]);
  if (typeof value === 'number') return Buffer.concat([Buffer.from([3]), varint(value)]);
  if (typeof value === 'string') return Buffer.concat([Buffer.from([8]), text(value)]);
  if (Buffer.isBuffer(value)) return Buffer.concat([Buffer.from([9]), text(value)]);
  return Buffer.from([value.bytes.length === 4 ? 6 : 7, ...value.bytes]);
}

export function pairs(items: Readonly<Record<string, Item>>): Buffer {
  return Buffer.concat(Object.entries(items).flatMap(([name, value]) => [text(name), item(value)]));
}

/** @param ids of stream and frame @returns the frame without its length */
export function frame(type: number, ids: readonly [number, number], payload: Buffer, flags = 1): Buffer {
  return Buffer.concat([Buffer.from([type, 0, 0, 0, flags]), ...ids.map(varint), payload]);
}

export function withLength(bytes: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

export const HELLO = {
  'supported-versions': '2.0',
  'max-frame-size': 16_380,
  capabilities: 'pipelining,async',
};

export function hello(items: Readonly<Record<string, Item>> = HELLO): Buffer {
  return frame(1, [0, 0], pairs(items));
}

/** As HAProxy's `req.hdrs_bin`. */
export function headersBin(headers: readonly (readonly [string, string])[]): Buffer {
  return Buffer.concat([
    ...headers.flat().map((value) => text(Buffer.from(value, 'latin1'))),
    Buffer.from([0, 0]),
  ]);
}

export interface Question {
  readonly method?: Item;
  readonly uri?: Item;
  readonly client?: Item;
  readonly headers?: Item;
}

export function question(path: string, from: string, headers: readonly (readonly [string, string])[] = []) {
  return { method: 'GET', uri: path, client: from, headers: headersBin(headers) };
}

export function notify(ids: readonly [number, number], args: Readonly<Record<string, Item>>): Buffer {
  const count = Buffer.from([Object.keys(args).length]);
  return frame(3, ids, Buffer.concat([text('request'), count, pairs(args)]));
}

export interface Received {
  readonly type: number;
  readonly ids: readonly [number, number];
  /** A HELLO or DISCONNECT has items. An ACK has the variables that it sets. */
  readonly items: Readonly<Record<string, Item>>;
}

export interface SpopClient {
  readonly socket: Socket;
  readonly received: Received[];
  readonly isClosed: () => boolean;
  send(...frames: readonly Buffer[]): void;
  /** Waits for so many frames in all. */
  frames(count: number): Promise<readonly Received[]>;
  /** @returns the variables that the answer sets */
  ask(args: Readonly<Record<string, Item>>): Promise<Readonly<Record<string, Item>>>;
}

export function spopClient(owner: Owner, port: number): SpopClient {
  const socket = connect(port, '127.0.0.1');
  owner.teardown(() => socket.destroy());
  const received: Received[] = [];
  let rest = Buffer.alloc(0);
  let isClosed = false;
  let asked = 0;
  socket.on('error', () => undefined);
  socket.on('close', () => {
    isClosed = true;
  });
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 4 && rest.length >= 4 + rest.readUInt32BE()) {
      const end = 4 + rest.readUInt32BE();
      received.push(read(rest.subarray(4, end)));
      rest = rest.subarray(end);
    }
  });
  const frames = async (count: number): Promise<readonly Received[]> => {
    await until(() => received.length >= count || isClosed);
    return received;
  };
  return {
    socket,
    received,
    isClosed: () => isClosed,
    send: (...all) => void socket.write(Buffer.concat(all.map(withLength))),
    frames,
    async ask(args) {
      const id = ++asked;
      const find = (): Received | undefined =>
        received.find(({ type, ids }) => type === 103 && ids[1] === id);
      socket.write(withLength(notify([7, id], args)));
      await until(() => find() !== undefined || isClosed);
      return find()?.items ?? {};
    },
  };
}

/** @returns a client whose HELLO is answered */
export async function greetedClient(owner: Owner, port: number): Promise<SpopClient> {
  const client = spopClient(owner, port);
  client.send(hello());
  await client.frames(1);
  return client;
}

/**
 * Waits as long as a count grows. Requests on another connection show that the agent is not only slow, so a test whose
 * count stands still ends.
 *
 * @returns the count
 */
export async function settled(other: SpopClient, count: () => number): Promise<number> {
  let last = count();
  for (let rounds = 0; rounds < 20; rounds++) {
    await other.ask(question('/elsewhere', '192.0.2.1'));
    if (count() > last) rounds = 0;
    last = count();
  }
  return last;
}

function read(bytes: Buffer): Received {
  let at = 5;
  const number = (): number => {
    let value = bytes[at++] ?? 0;
    for (let shift = 4, byte = value < 240 ? 0 : 128; byte >= 128; shift += 7) {
      byte = bytes[at++] ?? 0;
      value += byte * 2 ** shift;
    }
    return value;
  };
  const string = (): string => {
    const length = number();
    at += length;
    return bytes.toString('latin1', at - length, at);
  };
  const ids = [number(), number()] as const;
  const items: Record<string, Item> = {};
  while (at < bytes.length) {
    // The action SET-VAR with three arguments, for the scope of the transaction.
    if (bytes[0] === 103) at += 3;
    const name = string();
    items[name] = bytes[at++] === 3 ? number() : string();
  }
  return { type: bytes[0] ?? 0, ids, items };
}
