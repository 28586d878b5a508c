/** A running gateway with `protect`, in front of an application whose latency the test chooses. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Test } from 'tap';
import { type Answer, send } from '#test/gateway/proxy/exchange.ts';
import { type TestClock, testClock } from '#test/support/clock.ts';
import {
  BEHIND_PROXY,
  type Owner,
  policyFile,
  startTestGateway,
  startUpstream,
  type TestGateway,
} from '#test/support/gateway.ts';
import { until } from '#test/support/until.ts';

const POLICIES = policyFile(
  'name: pages, route: "GET /*", identifier: ip, limit: 100000, window: 1h',
  'name: login, route: "GET /login", identifier: ip, limit: 100000, window: 1h, priority: high',
  'name: report, route: "GET /report", identifier: ip, limit: 100000, window: 1h, priority: low',
);
const ENV = { ...BEHIND_PROXY, GATEWAY_CLIENT_SHARE: '1' };
export const MAX = 256;
const WINDOW_MS = 500;
export const CLIENTS = ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4'];

/** An application that holds requests until the test releases their replies. */
async function startApplication(owner: Owner) {
  const held: { req: IncomingMessage; res: ServerResponse }[] = [];
  const { origin } = await startUpstream(owner, (req, res) => void held.push({ req, res }));
  return {
    origin,
    held,
    arrived: (count: number) => until(() => held.length === count, `${count} requests are in progress`),
    /** Paths of the requests in progress, in the order of their arrival. */
    get paths() {
      return held.map(({ req }) => req.url ?? '');
    },
    answer(count = held.length, status = 200) {
      for (const { res } of held.splice(0, count)) res.writeHead(status).end('ok');
    },
  };
}

type Application = Awaited<ReturnType<typeof startApplication>>;

export class World {
  readonly application: Application;
  readonly gateway: TestGateway;
  readonly clock: TestClock;

  constructor(application: Application, gateway: TestGateway, clock: TestClock) {
    this.application = application;
    this.gateway = gateway;
    this.clock = clock;
  }

  get(path: string, from: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return send(this.gateway.port, path, { headers: { 'x-forwarded-for': from, ...headers } });
  }

  /** Sends several requests of each client, which the application answers after a time. */
  async load(clients: readonly string[], each: number, ms: number, status = 200): Promise<void> {
    const sent = clients.flatMap((from) => Array.from({ length: each }, () => this.get('/page', from)));
    await this.application.arrived(sent.length);
    this.clock.advance(ms);
    this.application.answer(sent.length, status);
    await Promise.all(sent);
    this.clock.advance(WINDOW_MS);
  }

  async learn(): Promise<void> {
    for (let i = 0; i < 4; i++) await this.load(CLIENTS, 1, 50);
  }

  /** Lowers the limit to half of the requests in progress. */
  async overload(each = 6): Promise<void> {
    while (this.limit === MAX) await this.load(CLIENTS, each, 2000);
    // Replies are measured again.
    this.clock.advance(2000);
  }

  get limit(): number {
    return this.sample('floodgate_protect_limit');
  }

  sample(name: string, labels: Readonly<Record<string, string>> = {}): number {
    return this.gateway.gateway
      .samples()
      .filter((one) => one.name === name)
      .filter((one) => Object.entries(labels).every(([label, value]) => one.labels[label] === value))
      .reduce((sum, { value }) => sum + value, 0);
  }

  waiting(priority: string): number {
    return this.sample('floodgate_protect_waiting', { priority });
  }

  /** Checks that nothing is held. */
  async isFree(t: Test): Promise<void> {
    await until(
      () => this.sample('floodgate_held') === this.sample('floodgate_held', { bound: 'connections' }),
    );
    t.equal(this.sample('floodgate_upstream_waiting'), 0);
  }
}

export async function startWorld(
  t: Test,
  protect: string,
  env: Readonly<Record<string, string>> = {},
  policies = POLICIES,
): Promise<World> {
  const clock = testClock();
  const app = await startApplication(t);
  const gateway = await startTestGateway(t, {
    upstream: app,
    policies: `${policies}\nprotect: ${protect}`,
    env: { ...ENV, ...env },
    clock: clock.now,
  });
  return new World(app, gateway, clock);
}

/** Starts a gateway whose lowered limit of 12 is used up. */
export async function startFull(t: Test, env: Readonly<Record<string, string>>, path = '/page') {
  const world = await startWorld(t, 'on', env);
  const { application } = world;
  await world.learn();
  await world.overload();
  const first = CLIENTS.flatMap((from) => [1, 2, 3].map(() => world.get(path, from)));
  await application.arrived(12);
  return { world, application, first };
}
