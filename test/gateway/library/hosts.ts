/** Runs one application four times: behind the gateway, and with the library in node:http, Express and Fastify. */
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import express from 'express';
import fastify from 'fastify';
import { createFastifyPlugin } from '#gateway/library/fastify-plugin.ts';
import { type InnerGateway, openGateway } from '#gateway/library/inner-gateway.ts';
import { readSettings } from '#gateway/library/settings.ts';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import type { Clock } from '#shared/clock.ts';
import { values } from '#test/gateway/proxy/exchange.ts';
import { numbersInTurn, type Owner, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { listen } from '#test/support/listen.ts';

export interface HostOptions {
  readonly policies: string;
  readonly clock?: Clock;
  readonly env?: Readonly<Record<string, string>>;
}

export interface Host {
  readonly origin: string;
  readonly gateway: InnerGateway | null;
}

/** Callbacks that end the replies to `/slow`. */
export const held = new Set<() => void>();

/** Chooses status and units by the path, and replies with its URL and its marks. */
const answer: RequestListener = (req, res) => {
  const status = Number(/\/status-(\d{3})/.exec(req.url ?? '')?.[1] ?? 200);
  const finish = (): void => {
    const units = /\/units-(\w+)/.exec(req.url ?? '')?.[1];
    const reported = units === undefined ? {} : { 'x-units': units };
    res.writeHead(status, { 'content-type': 'application/json', ...reported });
    const { url, headers, rawHeaders } = req;
    const over = [headers['x-gateway-over'] ?? null, values(rawHeaders, 'x-gateway-over')];
    res.end(JSON.stringify({ url, over }));
  };
  req.resume();
  if (/\/slow/.test(req.url ?? '')) held.add(finish);
  else finish();
};

/** Gives each gateway of this process a name of its own. */
let replicas = 0;

export function open({ policies, clock, env = {} }: HostOptions): Promise<InnerGateway> {
  return openGateway({
    policies: loadPolicies(policies, 'test.yaml'),
    settings: readSettings(env),
    log: { warn: () => undefined, info: () => undefined },
    clock: clock ?? (() => performance.timeOrigin + performance.now()),
    wallClock: clock ?? Date.now,
    newSecret: () => 'salt of the tests',
    randomInt: numbersInTurn(),
    replica: `library:${process.pid}:${++replicas}`,
  });
}

export const HOSTS: Readonly<Record<string, (owner: Owner, options: HostOptions) => Promise<Host>>> = {
  async 'the gateway in front'(owner, { policies, clock, env }) {
    const upstream = await startUpstream(owner, answer);
    const { origin } = await startTestGateway(owner, {
      upstream,
      policies,
      ...(clock === undefined ? {} : { clock, wallClock: clock }),
      ...(env === undefined ? {} : { env }),
    });
    return { origin, gateway: null };
  },
  async 'node:http'(owner, options) {
    const gateway = await open(options);
    owner.teardown(() => gateway.close());
    const server = createServer(async (req, res) => {
      if (await gateway.limit(req, res)) answer(req, res);
    });
    return { origin: `http://127.0.0.1:${await listen(owner, server)}`, gateway };
  },
  async Express(owner, options) {
    const gateway = await open(options);
    owner.teardown(() => gateway.close());
    const app = express();
    app.use(gateway.middleware);
    app.use((req: IncomingMessage, res) => answer(req, res));
    return { origin: `http://127.0.0.1:${await listen(owner, createServer(app))}`, gateway };
  },
  async Fastify(owner, options) {
    const gateway = await open(options);
    const app = fastify();
    await app.register(createFastifyPlugin(gateway));
    // The application reads no body, whatever its type.
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', (_request, payload, done) => {
      payload.resume();
      done(null);
    });
    app.all('*', (request, reply) => {
      reply.hijack();
      answer(request.raw, reply.raw);
    });
    const origin = await app.listen({ host: '127.0.0.1', port: 0 });
    owner.teardown(() => app.close());
    return { origin, gateway };
  },
};
