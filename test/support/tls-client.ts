/** Clients of a gateway with TLS. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { type RequestOptions, request } from 'node:https';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { type Answer, read } from '#test/gateway/proxy/exchange.ts';

/** Sends a request on a separate connection. The server's certificate must be from this authority. */
export function sendTls(
  port: number,
  path: string,
  ca: string,
  { body, ...options }: RequestOptions & { readonly body?: string | Buffer } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const req = request({
      host: '127.0.0.1',
      port,
      path,
      agent: false,
      ca: readFileSync(ca),
      ...options,
    });
    req.on('error', reject);
    req.on('response', (res) => read(res).then(resolve, reject));
    req.end(body);
  });
}

/** Resolves once the handshake is done. */
export function secured(
  port: number,
  ca: string,
  options: ConnectionOptions & { readonly localAddress?: string } = {},
): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, ca: readFileSync(ca), ...options }, () =>
      resolve(socket),
    );
    socket.on('error', reject);
  });
}

/**
 * Runs a program to its end.
 *
 * @param input written once the output matches `when`; without it standard input is empty
 */
export function run(
  program: string,
  args: readonly string[],
  input?: { readonly when: RegExp; readonly text: string },
): Promise<{ readonly output: string; readonly code: number }> {
  return new Promise((resolve) => {
    const child = execFile(program, args, (error, stdout, stderr) =>
      resolve({ output: stdout + stderr, code: typeof error?.code === 'number' ? error.code : 0 }),
    );
    if (input === undefined) {
      child.stdin?.end();
      return;
    }
    let output = '';
    let isWritten = false;
    child.stdout?.on('data', (chunk: string) => {
      output += chunk;
      if (isWritten || !input.when.test(output)) return;
      isWritten = true;
      child.stdin?.write(input.text);
    });
  });
}
