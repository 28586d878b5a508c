/** What is measured: one request each, prepared so that only the request itself is timed. */
import type { Sample } from './fill.ts';
import type { Part } from './options.ts';
import { type Call, type Service, workspaceId } from './service.ts';

export interface Operation {
  readonly part: Part;
  readonly name: string;
  /** How often; an expensive one less often. */
  readonly times: number;
  /** Makes ready what the i-th request needs. @returns the request to time */
  prepare(i: number): Call | Promise<Call>;
}

const client = `/api/v1/client/${workspaceId}`;
const management = '/api/v1/management';

/** What somebody answers. */
export const answer = { q1: 'An answer of some length, typed by somebody', q2: 7 };

export interface Places {
  /** The survey that has half of all responses. */
  readonly surveyId: string;
  /** Ends after a number of responses that is never reached. */
  readonly countedSurveyId: string;
  readonly sample: Sample;
}

export function operationsOn(service: Service, places: Places): readonly Operation[] {
  const { countedSurveyId, surveyId } = places;
  const { responseIds, userIds } = places.sample;
  const userOf = (i: number): string => userIds[(i * 37) % userIds.length] ?? '';
  const oneOf = (i: number): string => responseIds[(i * 31) % responseIds.length] ?? '';
  const create = async (body: object, kind = 'responses'): Promise<string> =>
    idIn(await service.call({ method: 'POST', path: `${client}/${kind}`, body }));
  return [
    {
      part: 'create',
      name: 'create response',
      times: 300,
      prepare: (i) => ({
        method: 'POST',
        path: `${client}/responses`,
        body: { surveyId, userId: userOf(i), finished: i % 2 === 0, data: answer },
      }),
    },
    {
      part: 'create',
      name: 'create response, survey with autoComplete',
      times: 100,
      prepare: () => ({
        method: 'POST',
        path: `${client}/responses`,
        body: { surveyId: countedSurveyId, finished: true, data: answer },
      }),
    },
    {
      part: 'create',
      name: 'create response, nobody known',
      times: 300,
      prepare: () => ({
        method: 'POST',
        path: `${client}/responses`,
        body: { surveyId, finished: true, data: answer },
      }),
    },
    {
      part: 'create',
      name: 'create response, with a display',
      times: 300,
      prepare: async (i) => {
        const userId = userOf(i);
        const displayId = await create({ surveyId, userId }, 'displays');
        const body = { surveyId, userId, displayId, finished: true, data: answer };
        return { method: 'POST', path: `${client}/responses`, body };
      },
    },
    {
      part: 'others',
      name: 'client update of a response',
      times: 300,
      prepare: async () => ({
        method: 'PUT',
        path: `${client}/responses/${await create({ surveyId, finished: false, data: {} })}`,
        body: { finished: true, data: answer, ttc: { q1: 1200 } },
      }),
    },
    {
      part: 'others',
      name: 'create display',
      times: 300,
      prepare: (i) => ({ method: 'POST', path: `${client}/displays`, body: { surveyId, userId: userOf(i) } }),
    },
    {
      part: 'others',
      name: 'identify user',
      times: 300,
      prepare: (i) => ({ method: 'POST', path: `${client}/user`, body: { userId: userOf(i) } }),
    },
    {
      part: 'state',
      name: 'environment state',
      times: 300,
      prepare: () => ({ method: 'GET', path: `${client}/environment` }),
    },
    {
      part: 'state',
      name: 'environment state, built anew',
      times: 100,
      async prepare(i) {
        const body = { name: `Bench ${i}` };
        await service.call({ method: 'PUT', path: `${management}/surveys/${surveyId}`, body });
        return { method: 'GET', path: `${client}/environment` };
      },
    },
    {
      part: 'others',
      name: 'read response',
      times: 300,
      prepare: (i) => ({ method: 'GET', path: `${management}/responses/${oneOf(i)}` }),
    },
    {
      part: 'list',
      name: 'list of a survey, 25',
      times: 200,
      prepare: () => ({ method: 'GET', path: `${management}/responses?surveyId=${surveyId}` }),
    },
    {
      part: 'list',
      name: 'list of a survey, 25 after 4,000',
      times: 100,
      prepare: () => ({ method: 'GET', path: `${management}/responses?surveyId=${surveyId}&skip=4000` }),
    },
    {
      part: 'list',
      name: 'list of the workspace, 25',
      times: 200,
      prepare: () => ({ method: 'GET', path: `${management}/responses?limit=25` }),
    },
    {
      part: 'list',
      name: 'list of contacts, 25',
      times: 200,
      prepare: () => ({ method: 'GET', path: `${management}/contacts?limit=25` }),
    },
    {
      part: 'export',
      name: 'export, 1,000 of all',
      times: 20,
      // As clients export: page after page, from the newest on.
      prepare: (i) => ({
        method: 'GET',
        path: `${management}/responses?limit=1000&skip=${(i % 10) * 1_000}`,
      }),
    },
    {
      part: 'others',
      name: 'change a response (management)',
      times: 200,
      prepare: (i) => ({
        method: 'PUT',
        path: `${management}/responses/${oneOf(i)}`,
        body: { data: { q2: i % 11 } },
      }),
    },
  ];
}

/** Of `{ data: { id } }`. */
export function idIn(reply: unknown): string {
  const data: unknown = typeof reply === 'object' && reply !== null && 'data' in reply ? reply.data : null;
  if (typeof data !== 'object' || data === null || !('id' in data)) throw new Error('The reply has no id');
  return String(data.id);
}
