/** An application that sends the replies of the cases, and a client that tells what it gets through a proxy. */
import type { Owner } from '#test/support/gateway.ts';
import type { SocketServer } from '#test/support/kinds.ts';
import { sendRaw } from '#test/support/raw.ts';
import { startRawUpstream } from '../exchange.ts';
import { REPLY_CASES, type ReplyCase } from './reply-cases.ts';

export interface Application extends SocketServer {
  /** Number of the connection that the last request came on, from 0. */
  readonly last: () => number;
}

/** Answers `/N` with the case of this number, and other paths with a plain reply. */
export async function startApplication(
  owner: Owner,
  closes: (one: ReplyCase) => boolean = ({ closes }) => closes === true,
): Promise<Application> {
  let last = -1;
  const server = await startRawUpstream(owner, (socket, text) => {
    if (!text.endsWith('\r\n\r\n')) return;
    last = server.sockets.indexOf(socket);
    const [, number] = /GET \/(\d+) (?![\s\S]*GET )/.exec(text) ?? [];
    const one = number === undefined ? undefined : REPLY_CASES[Number(number)];
    socket.write(one?.sent ?? 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext', 'latin1');
    if (one !== undefined && closes(one)) socket.end();
  });
  return { ...server, last: () => last };
}

export interface Received {
  /** Everything that the client received. */
  readonly text: string;
  readonly status: number;
  /** The head that the client received, without the empty line. */
  readonly head: string;
  readonly body: string;
  /** Whether the client has seen the end that the head announces. */
  readonly isWhole: boolean;
  /** Whether the proxy used the application's connection for the next request too. */
  readonly isKept: boolean;
}

/** Sends the request of a case, and then another one. */
export async function receive(port: number, one: ReplyCase, application: Application): Promise<Received> {
  const get = (path: string): Promise<string> =>
    sendRaw(port, `GET /${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`).ended();
  const text = await get(String(REPLY_CASES.indexOf(one)));
  const used = application.last();
  const next = await get('next');
  if (!next.endsWith('next')) throw new Error(`the request behind "${one.about}" got ${next}`);
  const end = text.indexOf('\r\n\r\n');
  const head = end < 0 ? '' : text.slice(0, end);
  const raw = end < 0 ? '' : text.slice(end + 4);
  const length = /\r\nContent-Length: (\d+)(?:\r\n|$)/i.exec(head)?.[1];
  const isChunked = /\r\nTransfer-Encoding: chunked(?:\r\n|$)/i.test(head);
  return {
    text,
    status: Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0),
    head,
    body: isChunked ? dataOf(raw) : raw,
    isWhole: head !== '' && (isChunked ? raw.endsWith('0\r\n\r\n') : Number(length) === raw.length),
    isKept: application.last() === used,
  };
}

/** @param raw chunks without extensions */
function dataOf(raw: string): string {
  let data = '';
  for (let at = 0; at < raw.length; ) {
    const lineEnd = raw.indexOf('\r\n', at);
    const size = Number.parseInt(raw.slice(at, lineEnd), 16);
    data += raw.slice(lineEnd + 2, lineEnd + 2 + size);
    at = lineEnd + 2 + size + 2;
  }
  return data;
}
