/**
 * Stands in for Traefik, which no Debian package brings: reads the labels of a service as Traefik's documentation says,
 * and does what forwardAuth does. It does nothing for other kinds of middlewares.
 */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { Owner } from './gateway.ts';
import { listen } from './listen.ts';

interface Router {
  readonly name: string;
  /** null for all hosts */
  readonly host: string | null;
  readonly prefix: string;
  /** In the order in which they act. */
  readonly middlewares: readonly string[];
}

export interface LabelledProxy {
  readonly port: number;
  readonly routers: readonly Router[];
}

type Labels = Readonly<Record<string, string>>;

/**
 * @param to origins that stand for those in the labels: of forwardAuth, and of the service
 * @param entry middlewares of the entry point, which act before those of each router
 */
export async function startLabelledProxy(
  owner: Owner,
  labels: Labels,
  to: { readonly forwardAuth: string; readonly service: string },
  entry: readonly string[] = [],
): Promise<LabelledProxy> {
  const routers = routersOf(labels).map((router) => ({
    ...router,
    middlewares: [...entry, ...router.middlewares],
  }));
  const server = createServer(async (req, res) => {
    const router = routers.find(
      ({ host, prefix }) => req.url?.startsWith(prefix) && (host === null || host === req.headers.host),
    );
    for (const name of router?.middlewares ?? []) {
      // A name may end in the provider that defines it, such as @file.
      const address = labels[`traefik.http.middlewares.${name.replace(/@\w+$/, '')}.forwardauth.address`];
      if (address === undefined) continue;
      const answer = await exchange(`${to.forwardAuth}${new URL(address).pathname}`, 'GET', described(req));
      if (answer.statusCode === 200) {
        answer.resume();
        continue;
      }
      copy(answer, res);
      return;
    }
    if (router === undefined) res.writeHead(404).end();
    else copy(await exchange(`${to.service}${req.url}`, req.method, forwarded(req)), res);
  });
  const port = await listen(owner, server);
  return { port, routers };
}

/** The longest rule first, as Traefik sorts them. */
function routersOf(labels: Labels): readonly Router[] {
  const routers = Object.entries(labels).flatMap(([label, rule]) => {
    const [, name] = /^traefik\.http\.routers\.([^.]+)\.rule$/.exec(label) ?? [];
    if (name === undefined) return [];
    const [, prefix = '/'] = /PathPrefix\(`([^`]+)`\)/.exec(rule) ?? [];
    const [, host = null] = /Host\(`([^`]+)`\)/.exec(rule) ?? [];
    const middlewares = labels[`traefik.http.routers.${name}.middlewares`]?.split(',') ?? [];
    return [{ name, host, prefix, middlewares }];
  });
  return routers.sort((a, b) => b.prefix.length - a.prefix.length);
}

/** Without trusted addresses, Traefik replaces what the client says of itself. */
function forwarded({ headers, socket }: IncomingMessage): Record<string, string | string[] | undefined> {
  const { connection, 'transfer-encoding': chunked, 'content-length': length, ...kept } = headers;
  const address = socket.remoteAddress ?? '';
  return {
    ...kept,
    'x-forwarded-for': address,
    'x-forwarded-host': headers.host,
    'x-forwarded-proto': 'http',
    'x-real-ip': address,
  };
}

function described(req: IncomingMessage): Record<string, string | string[] | undefined> {
  return { ...forwarded(req), 'x-forwarded-method': req.method, 'x-forwarded-uri': req.url };
}

function exchange(
  url: string,
  method: string | undefined,
  headers: Record<string, string | string[] | undefined>,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request(url, { method, headers }, resolve).on('error', reject).end();
  });
}

function copy(from: IncomingMessage, to: ServerResponse): void {
  to.writeHead(from.statusCode ?? 502, from.headers);
  from.pipe(to);
}
