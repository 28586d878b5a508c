/**
 * Starts the API as in production, but on a database of the bench and without rate limits, and sends requests to it.
 */
import { join } from 'node:path';
import type { Processes, Started, StartOptions } from '#bench/run/processes.ts';
import { ROOT } from '#bench/run/programs.ts';
import { openHttp } from '#test/support/http-send.ts';

export const workspaceId = 'cworkspaceofthebench00000';
export const apiKey = 'fbk_of_the_bench';
/** Webhooks of the bench point to this address. */
export const RECEIVER_HOST = '127.0.0.1';
const CONNECTIONS = 8;
const SURVEYS = 20;

export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly body?: unknown;
}

/** A running API. `pid` is its first process, and the workers are children of that. */
export interface Service extends Started {
  /** Address of the API, such as `http://127.0.0.1:4000`. */
  readonly origin: string;
  /** @returns the `data` of the reply @throws Error for another status than 200 */
  call(call: Call): Promise<{ readonly id?: string }>;
}

interface ServiceOptions {
  readonly databaseUrl: string;
  readonly workers?: number;
  /** Additional settings of the API. */
  readonly env?: Readonly<Record<string, string>>;
  readonly nodeFlags?: readonly string[];
  readonly onMessage?: NonNullable<StartOptions['onMessage']>;
}

export async function startService(
  processes: Processes,
  { databaseUrl, workers = 1, env, nodeFlags = [], ...options }: ServiceOptions,
): Promise<Service> {
  const started = await processes.node('the API', [...nodeFlags, join(ROOT, 'api', 'main.ts')], {
    ...{ ...options, readyText: 'API ready on ', cwd: ROOT },
    env: {
      NODE_COMPILE_CACHE: join(ROOT, 'node_modules', '.cache', 'node'),
      API_PORT: '0',
      API_WORKERS: String(workers),
      DATABASE_URL: databaseUrl,
      STORAGE_PATH: join(processes.directory, 'uploads'),
      RATE_LIMITING_DISABLED: '1',
      LOG_LEVEL: 'warn',
      BOOTSTRAP_WORKSPACE_ID: workspaceId,
      BOOTSTRAP_API_KEY: apiKey,
      BOOTSTRAP_PASSWORD: 'Password1',
      WEBHOOK_ALLOWED_TARGETS: RECEIVER_HOST,
      ...env,
    },
  });
  const origin = /API ready on (\S+)/.exec(started.output())?.[1] ?? '';
  const http = openHttp(origin, CONNECTIONS);
  return {
    ...{ ...started, origin },
    async call({ body, method, path }) {
      const { status, text } = await http.send({
        ...{ method, url: path, headers: { 'x-api-key': apiKey, 'content-type': 'application/json' } },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      if (status !== 200) throw new Error(`${method} ${path} got the reply ${status}: ${text}`);
      return JSON.parse(text).data;
    },
    async stop() {
      await http.close();
      await started.stop();
    },
  };
}

/**
 * Creates surveys on an empty database.
 *
 * @returns the ids of the surveys; the last one has `autoComplete`, with a number of responses that is never reached
 */
export async function createSurveys(processes: Processes, databaseUrl: string): Promise<readonly string[]> {
  const service = await startService(processes, { databaseUrl });
  const surveyIds: string[] = [];
  for (let i = 0; i <= SURVEYS; i++) {
    const body = {
      ...{ workspaceId, name: `Survey ${i}`, type: i === 0 ? 'website' : 'link', status: 'inProgress' },
      autoComplete: i === SURVEYS ? 1_000_000 : null,
      questions: [
        { id: 'q1', type: 'openText', headline: { default: 'What?' } },
        { id: 'q2', type: 'nps', headline: { default: 'How much?' }, required: false },
      ],
    };
    const { id } = await service.call({ method: 'POST', path: '/api/v1/management/surveys', body });
    surveyIds.push(id ?? '');
  }
  await service.stop();
  return surveyIds;
}
