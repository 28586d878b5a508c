/** The API on a database of the bench, and calls to it. */
import { apiKey, startApi, workspaceId } from '#bench/run/api.ts';
import type { Processes } from '#bench/run/processes.ts';
import { openHttp } from '#test/support/http-send.ts';

/** Webhooks of the bench point to this address. */
export const RECEIVER_HOST = '127.0.0.1';
const CONNECTIONS = 8;
const SURVEYS = 20;

export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly body?: unknown;
}

export interface Service {
  readonly origin: string;
  /** Its first process. The workers are its children. */
  readonly pid: number;
  /** @returns the `data` of the reply @throws Error for another status than 200 */
  call(call: Call): Promise<{ readonly id?: string }>;
  stop(): Promise<void>;
}

export async function startService(
  processes: Processes,
  databaseUrl: string,
  workers: number,
): Promise<Service> {
  const env = { WEBHOOK_ALLOWED_TARGETS: RECEIVER_HOST };
  const { origin, pid, stop } = await startApi(processes, { databaseUrl, workers, env });
  const http = openHttp(origin, CONNECTIONS);
  return {
    origin,
    pid,
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
      await stop();
    },
  };
}

/** @returns ids of surveys; the last one counts its responses, and never reaches the number that ends it */
export async function createSurveys(service: Service): Promise<readonly string[]> {
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
  return surveyIds;
}
