/** Starts receivers of webhooks on loopback, and an API whose worker the test drives. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { sql } from 'kysely';
import { type Logger, pino } from 'pino';
import { createSender } from '#api/events/sender.ts';
import { startWorker } from '#api/events/worker.ts';
import { acceptFollowUps } from '#api/jobs/follow-ups.ts';
import { readPage } from '#test/docs/pages.ts';
import { type ApiOptions, addSurvey, startApi, type TestApi, workspaceId } from '#test/support/api-app.ts';
import type { Owner } from '#test/support/gateway.ts';
import type { Json } from '#test/support/json.ts';

export interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly json: Json;
  readonly path: string;
}

export interface Receiver {
  readonly url: string;
  readonly received: Received[];
  /** Closes it before the test ends. */
  close(): void;
}

type Answer = (response: ServerResponse, request: IncomingMessage) => void;

/** @param answer its reply; default: 204 */
export async function startReceiver(
  owner: Owner,
  answer: Answer = (response) => response.writeHead(204).end(),
): Promise<Receiver> {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    received.push({ headers: request.headers, text, json: JSON.parse(text), path: request.url ?? '' });
    answer(response, request);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  owner.teardown(close);
  return { url: `http://127.0.0.1:${port}/hook`, received, close };
}

/** @returns a function that creates a row by a POST with the key, and returns the id @throws Error with the refusal */
export function creatorAt(base: string, key: string): (path: string, body: object) => Promise<string> {
  return async (path, body) => {
    const reply = await fetch(`${base}/api/v1/${path}`, {
      method: 'POST',
      headers: { 'x-api-key': key },
      body: JSON.stringify(body),
    });
    if (reply.status !== 200) throw new Error(await reply.text());
    const { data } = (await reply.json()) as { data: { id: string } };
    return data.id;
  };
}

type Worker = ReturnType<typeof startWorker>;

export interface EventApi extends TestApi {
  readonly worker: Worker;
  addWebhook(fields: {
    readonly url: string;
    readonly triggers?: readonly string[];
    readonly surveyIds?: readonly string[];
    readonly workspaceId?: string;
  }): Promise<string>;
  /** Starts a receiver, and adds a webhook for it. @param answer default: 204 */
  addHook(answer?: Answer): Promise<Receiver & { readonly id: string }>;
  /** Answers a survey, by default one that all calls share. @returns the id of the response */
  respond(fields?: Readonly<Record<string, unknown>>, workspaceId?: string): Promise<string>;
}

/** Adds a workspace of an organization of its own name, which is created if it does not exist. */
export async function addWorkspaceOf(api: TestApi, organizationId: string, id: string): Promise<void> {
  const { db } = api.context;
  const first = await db.selectFrom('organizations').selectAll().executeTakeFirstOrThrow();
  await db
    .insertInto('organizations')
    .values({ ...first, id: organizationId })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  await api.addWorkspace(id);
  await db.updateTable('workspaces').set({ organizationId }).where('id', '=', id).execute();
}

export function deliveriesOf({ context: { db } }: TestApi) {
  return db.selectFrom('deliveries').selectAll().orderBy('createdAt').execute();
}

export function attemptsOf({ context: { db } }: TestApi) {
  return db.selectFrom('deliveryAttempts').selectAll().orderBy('number').execute();
}

/** Runs the statement by which an operator delivers again. */
export async function makeDueAgain({ context }: TestApi, deliveryId: string): Promise<void> {
  const block = readPage('docs/events.md').blocks.find(({ text }) => text.startsWith('update "deliveries"'));
  await sql.raw(block?.text.replace('DELIVERY', deliveryId) ?? '').execute(context.db);
}

interface WorkerChoices {
  readonly log?: Logger;
  /** The number of failed attempts after which a delivery is parked. */
  readonly attemptsMax?: number;
}

/** Works on the deliveries of this API until it is stopped. */
export function startTestWorker(
  { context }: TestApi,
  { log = pino({ level: 'silent' }), ...options }: WorkerChoices = {},
): Worker {
  return startWorker({ ...context, ...options, log, acceptFollowUps: () => acceptFollowUps(context, log) });
}

/** Gives receivers more time than a slow machine needs. */
const ATTEMPT_TIMEOUT_MS = 600_000;

export async function startEventApi(
  owner: Owner,
  options: ApiOptions & WorkerChoices = {},
): Promise<EventApi> {
  const api = await startApi(owner, {
    ...options,
    env: { DANGEROUSLY_ALLOW_WEBHOOK_INTERNAL_URLS: '1', ...options.env },
    parts: (context) => ({
      sender: createSender(context.targets, ATTEMPT_TIMEOUT_MS),
      ...options.parts?.(context),
    }),
  });
  const { log, attemptsMax } = options;
  const worker = startTestWorker(api, {
    ...(log === undefined ? {} : { log }),
    ...(attemptsMax === undefined ? {} : { attemptsMax }),
  });
  owner.teardown(() => worker.stop());
  let count = 0;
  let shared: Promise<Json> | undefined;
  const events: EventApi = {
    ...api,
    worker,
    async addHook(answer) {
      const receiver = await startReceiver(owner, answer);
      return { ...receiver, id: await events.addWebhook(receiver) };
    },
    async respond(fields = {}, scope = workspaceId) {
      shared ??= addSurvey(api);
      const body = { surveyId: (await shared).id, finished: false, data: { q1: 'Yes' }, ...fields };
      const reply = await api.client('POST', `/api/v1/client/${scope}/responses`, body);
      if (reply.status !== 200) throw new Error(reply.text);
      return reply.json.data.id;
    },
    async addWebhook({ url, triggers = ['responseCreated'], surveyIds = [], workspaceId: ws }) {
      count += 1;
      const id = `webhook${count}`;
      const now = new Date(api.context.clock()).toISOString();
      await api.context.db
        .insertInto('webhooks')
        .values({
          ...{ id, createdAt: now, updatedAt: now, workspaceId: ws ?? workspaceId, name: null, url },
          ...{ source: 'user', secret: 'whsec_AAAA' },
          ...{ triggers: JSON.stringify(triggers), surveyIds: JSON.stringify(surveyIds) },
        })
        .execute();
      return id;
    },
  };
  return events;
}
