/** Sends requests to the public address as clients do, with any certificate. */
import { request as plainRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';

export interface PublicReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

export const TIMEOUT_MS = 5000;
const BODY_LENGTH_MAX = 65_536;

/** @param path sent unchanged @throws the error of the connection */
export function ask(
  { protocol, hostname, port }: URL,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  { method = 'GET', body = '' }: { readonly method?: string; readonly body?: string } = {},
): Promise<PublicReply> {
  const isTls = protocol === 'https:';
  return new Promise((resolve, reject) => {
    const call = (isTls ? tlsRequest : plainRequest)(
      {
        host: hostname.replace(/^\[|\]$/g, ''),
        port: port === '' ? (isTls ? 443 : 80) : port,
        method,
        path,
        headers: { 'user-agent': 'floodgate-doctor', ...headers },
        agent: false,
        timeout: TIMEOUT_MS,
        ...(isTls ? { rejectUnauthorized: false } : {}),
      },
      (response) => {
        let body = '';
        response.on('data', (chunk: Buffer) => {
          if (body.length < BODY_LENGTH_MAX) body += chunk.toString();
          else response.destroy();
        });
        response.on('close', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
        );
      },
    );
    call.on('timeout', () => call.destroy(new Error(`no answer within ${TIMEOUT_MS} ms`)));
    call.on('error', reject);
    call.end(body);
  });
}

/** Proxies in front pass this path on, and the public listener refuses it before it counts anything. */
const MALFORMED = '/floodgate%2500';

/** Checks for the public listener of a gateway. @throws the error of the connection */
export async function isGateway(origin: URL): Promise<boolean> {
  return (await ask(origin, MALFORMED)).body.includes('"code":"gateway_bad_request"');
}
