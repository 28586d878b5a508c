/**
 * Starts the API in this process, with a real database, a clock that the test moves, and one workspace with a key for
 * all of it.
 */
import { createHash } from 'node:crypto';
import type { FastifyInstance, InjectOptions } from 'fastify';
import { type Logger, pino } from 'pino';
import { buildApp } from '#api/app.ts';
import { hashApiKey } from '#api/auth/api-key.ts';
import { createPasswords, deriveArgon2id } from '#api/auth/password.ts';
import type { Permission } from '#api/auth/principal.ts';
import { bootstrap } from '#api/bootstrap.ts';
import { readConfig } from '#api/config.ts';
import type { Context } from '#api/context.ts';
import type { Resolve } from '#api/events/targets.ts';
import { openContext } from '#api/open-context.ts';
import { insertWorkspace } from '#api/resources/workspaces/store.ts';
import { newId, type Random } from '#api/values/ids.ts';
import type { Clock } from '#shared/clock.ts';
import { privateDatabase } from './database.ts';
import type { Owner } from './gateway.ts';
import type { Json } from './json.ts';
import { STORE_BUDGET_MS } from './store-budget.ts';
import { makeFolder, removeFolder } from './temporary-folder.ts';

export const workspaceId = 'ws1';
export const apiKey = 'fbk_test';
export const publicUrl = 'https://feedback.example.com';
export const startOfTime = Date.UTC(2026, 0, 2, 3, 4, 5, 678);

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
  /** The body as JSON; throws if it is not JSON. */
  readonly json: Json;
}

export interface TestApi {
  readonly app: FastifyInstance;
  readonly context: Context;
  advance(ms: number): void;
  /** A request with the key of the workspace; a body that is not text is sent as JSON. */
  manage(method: Method, url: string, body?: unknown): Promise<Reply>;
  /** A request without credentials. */
  client(method: Method, url: string, body?: unknown, headers?: Record<string, string>): Promise<Reply>;
  /** Adds another workspace of the same organization. The first key has no access to it. */
  addWorkspace(id: string): Promise<void>;
  /** Creates another key. @returns the key */
  addKey(permissions: Readonly<Record<string, Permission>>): Promise<string>;
  /** Listens on loopback. @returns the port */
  listen(): Promise<number>;
  /** Closes it before the test ends. */
  close(): Promise<void>;
}

type Method = NonNullable<InjectOptions['method']>;

/** Returns the same bytes in every run: hashes of a name and a counter. */
export function countingRandom(name = ''): Random {
  let count = 0;
  return (bytes) => {
    const chunks: Buffer[] = [];
    for (let length = 0; length < bytes; length += 32) {
      count += 1;
      chunks.push(createHash('sha256').update(`${name}${count}`).digest());
    }
    return Buffer.concat(chunks).subarray(0, bytes);
  };
}

/** Every API of every test hashes passwords, which takes 40 ms at the usual cost. So this is Argon2id at a low cost. */
const LIGHT = { memory: 64, passes: 1, parallelism: 1 };

export interface ApiOptions {
  /** Further environment variables. By default the application's own limits are off, and everybody may sign up. */
  readonly env?: Readonly<Record<string, string>>;
  /** Parts of the context that the test replaces. */
  readonly parts?: (context: Context) => Partial<Context>;
  /** Uses the real time instead of a stopped clock. */
  readonly clock?: Clock;
  /** Replaces `countingRandom()`: two APIs on one database need different ids. */
  readonly random?: Random;
  /** Collects log lines of the parts that log. */
  readonly log?: Logger;
  /** The service is starting until this returns true. */
  readonly isReady?: () => boolean;
  /** Replaces the DNS. By default every name has the same public address. */
  readonly resolve?: Resolve;
}

/** Starts an API that is closed when the test ends. */
export async function startApi(owner: Owner, options: ApiOptions = {}): Promise<TestApi> {
  let now = startOfTime;
  const clock = options.clock ?? ((): number => now);
  const log = options.log ?? pino({ level: 'silent' });
  const random = options.random ?? countingRandom();
  const folder = makeFolder();
  const database = await privateDatabase();
  const { config, secrets } = readConfig(
    {
      DATABASE_URL: database.url,
      PUBLIC_URL: publicUrl,
      BOOTSTRAP_WORKSPACE_ID: workspaceId,
      BOOTSTRAP_API_KEY: apiKey,
      BOOTSTRAP_PASSWORD: 'Password1',
      RATE_LIMITING_DISABLED: '1',
      SIGNUP_ENABLED: '1',
      STORAGE_PATH: folder,
      ...options.env,
    },
    '/',
  );
  const derive: Parameters<typeof createPasswords>[1] = (password, salt) =>
    deriveArgon2id(password, salt, LIGHT);
  const { context: standard, closing } = await openContext(config, secrets, {
    clock,
    random,
    log,
    resolve: options.resolve ?? (async () => ['93.184.215.14']),
    signingSecret: Buffer.from('a secret of the tests'),
    passwords: createPasswords(random, derive),
    countersWaitMs: STORE_BUDGET_MS,
  });
  const { db } = standard;
  const context: Context = { ...standard, ...options.parts?.(standard) };
  if (config.storage.kind === 'disk') await context.storage.check();
  // The first start hashes with the standard passwords, even if the test replaces them.
  await bootstrap({ ...context, passwords: standard.passwords }, secrets);
  const app = await buildApp(context, log, options.isReady);

  const call = async (options: InjectOptions): Promise<Reply> => {
    const response = await app.inject(options);
    await context.background.idle();
    return {
      status: response.statusCode,
      headers: response.headers,
      text: response.body,
      get json() {
        return JSON.parse(response.body);
      },
    };
  };
  const closeAll = async (): Promise<void> => {
    await app.close();
    await context.mailer.close();
    for (const { stop } of closing) await stop();
    removeFolder(folder);
    await database.drop();
  };
  let closed: Promise<void> | null = null;
  const close = (): Promise<void> => {
    closed ??= closeAll();
    return closed;
  };
  owner.teardown(close);
  const payloadOf = (body: unknown): { payload?: string } =>
    body === undefined ? {} : { payload: typeof body === 'string' ? body : JSON.stringify(body) };
  const timestamp = (): string => new Date(now).toISOString();

  return {
    app,
    context,
    advance: (ms) => {
      now += ms;
    },
    manage: (method, url, body) =>
      call({ method, url, headers: { 'x-api-key': apiKey }, ...payloadOf(body) }),
    client: (method, url, body, headers = {}) => call({ method, url, headers, ...payloadOf(body) }),
    async addWorkspace(id) {
      const { id: organizationId } = await db
        .selectFrom('organizations')
        .select('id')
        .executeTakeFirstOrThrow();
      await insertWorkspace(db, {
        id,
        organizationId,
        name: `Workspace ${id}`,
        createdAt: timestamp(),
      });
    },
    async addKey(permissions) {
      const { id: organizationId } = await db
        .selectFrom('organizations')
        .select('id')
        .executeTakeFirstOrThrow();
      const id = newId(random);
      const key = `fbk_${id}`;
      await db
        .insertInto('apiKeys')
        .values({
          id,
          organizationId,
          label: 'Test',
          hashedKey: hashApiKey(key),
          createdBy: null,
          createdAt: timestamp(),
          lastUsedAt: null,
        })
        .execute();
      for (const [workspace, permission] of Object.entries(permissions)) {
        await db
          .insertInto('apiKeyPermissions')
          .values({ apiKeyId: id, workspaceId: workspace, permission })
          .execute();
      }
      return key;
    },
    listen: async () => Number(new URL(await app.listen({ port: 0, host: '127.0.0.1' })).port),
    close,
  };
}

/** The smallest valid survey. */
export function surveyBody(overrides: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    workspaceId,
    name: 'Survey',
    status: 'inProgress',
    questions: [{ id: 'q1', type: 'openText', headline: { default: 'What?' } }],
    ...overrides,
  };
}

/** The trigger of app surveys in tests that need any trigger. */
const trigger = { name: 'Test', type: 'code', key: 'test' };

/** Creates an action class for code, with its name as its key. */
export async function addActionClass(api: TestApi, name: string): Promise<Json> {
  const body = { workspaceId, name, type: 'code', key: name };
  return (await api.manage('POST', '/api/v1/management/action-classes', body)).json.data;
}

/** Creates a survey and returns the reply of the API. An app survey gets a trigger. */
export async function addSurvey(api: TestApi, overrides: Record<string, unknown> = {}): Promise<Json> {
  if (overrides.type === 'app' && overrides.triggers === undefined) {
    const scope = overrides.workspaceId ?? workspaceId;
    const made = await api.manage('POST', '/api/v1/management/action-classes', {
      ...trigger,
      workspaceId: scope,
    });
    if (made.status !== 200 && made.status !== 409) throw new Error(`No action class: ${made.text}`);
    return addSurvey(api, { ...overrides, triggers: [{ actionClass: trigger }] });
  }
  const reply = await api.manage('POST', '/api/v1/management/surveys', surveyBody(overrides));
  if (reply.status !== 200) throw new Error(`The survey was refused: ${reply.text}`);
  return reply.json.data;
}
