/** The API requests that are measured one at a time. Preparation is not part of the measured time. */
import { workspaceId } from '#bench/api/service.ts';
import { median, quantile } from '#bench/run/statistics.ts';
import type { Usage } from '#bench/run/usage.ts';
import type { Sample } from './fill.ts';
import type { Call, Service } from './service.ts';

export const PARTS = ['create', 'state', 'list', 'export', 'others'] as const;
type Part = (typeof PARTS)[number];

export interface Operation {
  readonly part: Part;
  readonly name: string;
  /** Number of measurements. */
  readonly times: number;
  /** Creates the rows that the i-th request needs. @returns the request */
  readonly prepare: (i: number) => Call | Promise<Call>;
}

export const ANSWER = { q1: 'An answer of some length, typed by somebody', q2: 7 };

const client = `/api/v1/client/${workspaceId}`;
const management = '/api/v1/management';
const responses = `${management}/responses`;

const get = (path: string): Call => ({ method: 'GET', path });
const post = (path: string, body: object): Call => ({ method: 'POST', path, body });
const put = (path: string, body: object): Call => ({ method: 'PUT', path, body });

export interface Places {
  /** The survey with half of all responses. */
  readonly surveyId: string;
  /** A survey with `autoComplete`. */
  readonly countedSurveyId: string;
  readonly sample: Sample;
}

export function operationsOn(service: Service, places: Places): readonly Operation[] {
  const { countedSurveyId, surveyId } = places;
  const { responseIds, userIds } = places.sample;
  const userOf = (i: number): string => userIds[(i * 37) % userIds.length] ?? '';
  const oneOf = (i: number): string => responseIds[(i * 31) % responseIds.length] ?? '';
  const respond = (body: object): Call =>
    post(`${client}/responses`, { surveyId, finished: true, data: ANSWER, ...body });
  const display = (i: number): Call => post(`${client}/displays`, { surveyId, userId: userOf(i) });
  const idOf = async (call: Call): Promise<string> => (await service.call(call)).id ?? '';
  const one = (part: Part, name: string, times: number, prepare: Operation['prepare']): Operation => ({
    ...{ part, name, times, prepare },
  });
  return [
    one('create', 'create response', 300, (i) => respond({ userId: userOf(i), finished: i % 2 === 0 })),
    one('create', 'create response, survey with autoComplete', 100, () =>
      respond({ surveyId: countedSurveyId }),
    ),
    one('create', 'create response without a contact', 300, () => respond({})),
    one('create', 'create response with a display', 300, async (i) =>
      respond({ userId: userOf(i), displayId: await idOf(display(i)) }),
    ),
    one('others', 'client update of a response', 300, async () => {
      const id = await idOf(respond({ finished: false, data: {} }));
      return put(`${client}/responses/${id}`, { finished: true, data: ANSWER, ttc: { q1: 1200 } });
    }),
    one('others', 'create display', 300, display),
    one('others', 'identify user', 300, (i) => post(`${client}/user`, { userId: userOf(i) })),
    one('state', 'environment state', 300, () => get(`${client}/environment`)),
    one('state', 'environment state after a change', 100, async (i) => {
      await service.call(put(`${management}/surveys/${surveyId}`, { name: `Bench ${i}` }));
      return get(`${client}/environment`);
    }),
    one('others', 'read response', 300, (i) => get(`${responses}/${oneOf(i)}`)),
    one('list', 'list of a survey, 25', 200, () => get(`${responses}?surveyId=${surveyId}`)),
    one('list', 'list of a survey, 25 after 4,000', 100, () =>
      get(`${responses}?surveyId=${surveyId}&skip=4000`),
    ),
    one('list', 'list of the workspace, 25', 200, () => get(`${responses}?limit=25`)),
    one('list', 'list of contacts, 25', 200, () => get(`${management}/contacts?limit=25`)),
    // Clients export in this way: page after page, from the newest response to the oldest.
    one('export', 'export, 1,000 of all', 20, (i) => get(`${responses}?limit=1000&skip=${(i % 10) * 1000}`)),
    one('others', 'change a response (management)', 200, (i) =>
      put(`${responses}/${oneOf(i)}`, { data: { q2: i % 11 } }),
    ),
  ];
}

export interface Cost {
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU time of the API and of the database server, for a request with its preparation. */
  readonly apiUs: number;
  readonly databaseUs: number;
}

const WARM_UP = 50;

/** Warms the API up, because a process that has just started is several times as slow. */
export async function warmUp(service: Service, operations: readonly Operation[]): Promise<void> {
  for (let i = 0; i < WARM_UP; i++)
    for (const { prepare } of operations) await service.call(await prepare(i));
}

export async function time(
  service: Service,
  { prepare, times }: Operation,
  usage: () => readonly [api: Usage, database: Usage],
): Promise<Cost> {
  const durations: number[] = [];
  const before = usage();
  for (let i = 0; i < times; i++) {
    const call = await prepare(i);
    const began = performance.now();
    await service.call(call);
    durations.push(performance.now() - began);
  }
  const after = usage();
  return {
    p50Ms: median(durations),
    p99Ms: quantile(durations, 0.99),
    apiUs: (after[0].cpuUs - before[0].cpuUs) / times,
    databaseUs: (after[1].cpuUs - before[1].cpuUs) / times,
  };
}
