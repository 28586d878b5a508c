/** Random concurrent work on the same rows ends like sequential work. A failure shows the work. */

import t, { type Test } from 'tap';
import { workspaceId } from '#test/support/api-app.ts';
import type { Sent } from '#test/support/description.ts';
import { fc } from '#test/support/fast-check.ts';
import { openSurvey, type Request } from '#test/support/world.ts';
import { brokenInvariants } from './invariants.ts';
import { asKey, client, startTwins } from './twins.ts';

const RUNS = 12;
const { atOnce, first } = await startTwins(t);
const { api, world } = first;
const { db } = api.context;
const management = '/api/v1/management';
const FIELDS = ['a', 'b', 'c', 'd'];

async function made(request: Request): Promise<string> {
  const { status, text } = await world.options.send(request);
  if (status >= 300) throw new Error(`${request.url} was answered ${status}: ${text}`);
  return JSON.parse(text).data.id;
}

const newSurvey = (more: object = {}): Promise<string> =>
  made(asKey('POST', `${management}/surveys`, { workspaceId, ...openSurvey, ...more }));
const newResponse = (surveyId: string): Promise<string> =>
  made(client('POST', 'responses', { surveyId, finished: false, data: {} }));
const read = async (url: string) => JSON.parse((await world.options.send(asKey('GET', url))).text).data;

/** A 500 ends the run. Then fast-check shows the work that led there. */
function noFault(replies: readonly Sent[]): void {
  for (const { status, text } of replies) if (status >= 500) throw new Error(`${status} ${text}`);
}

async function fits(): Promise<void> {
  const broken = await brokenInvariants(db);
  if (broken.length > 0) throw new Error(broken.join('; '));
}

async function holds<T>(t: Test, work: fc.Arbitrary<T>, property: (work: T) => Promise<void>): Promise<void> {
  await fc.assert(fc.asyncProperty(work, property), { numRuns: RUNS, endOnFailure: true });
  t.pass(`${RUNS} runs`);
}

/** The fields that each writer sets. Each writer sets its number. */
const patches = fc.array(fc.subarray(FIELDS, { minLength: 1 }), { minLength: 2, maxLength: 12 });
const valuesOf = (fields: readonly string[], writer: number): Record<string, string> =>
  Object.fromEntries(fields.map((field) => [field, `w${writer}`]));

/** Checks that every written field has the value of one of its writers. */
function keepsAll(stored: Readonly<Record<string, unknown>>, patches: readonly (readonly string[])[]): void {
  for (const field of FIELDS) {
    const writers = patches.flatMap((fields, i) => (fields.includes(field) ? [`w${i}`] : []));
    const value = stored[field];
    if (writers.length > 0 && !writers.includes(String(value))) {
      throw new Error(`${field} is ${value}, written by ${writers}: ${JSON.stringify(stored)}`);
    }
  }
}

t.test('concurrent answers to one response are all kept', async (t) => {
  const questions = FIELDS.map((id) => ({ id, type: 'openText', headline: { default: id } }));
  const surveyId = await newSurvey({ questions });
  await holds(t, patches, async (patches) => {
    const id = await newResponse(surveyId);
    const requests = patches.map((fields, i): Request => {
      const body = { data: valuesOf(fields, i), finished: false, ttc: { [`t${i}`]: i } };
      if (i % 3 === 0) return asKey('PUT', `${management}/responses/${id}`, body);
      return {
        ...client('PUT', `responses/${id}`, body),
        url: `/api/v${i % 3}/client/${workspaceId}/responses/${id}`,
      };
    });
    const replies = await atOnce(requests);
    noFault(replies);
    const response = await read(`${management}/responses/${id}`);
    keepsAll(response.data, patches);
    const times = Object.keys(response.ttc).length;
    if (times !== patches.length) throw new Error(`${times} times of ${patches.length}`);
  });
});

t.test('concurrent attributes of one contact are all kept, and new keys are created once', async (t) => {
  let run = 0;
  await holds(t, patches, async (patches) => {
    run += 1;
    const userId = `user ${run}`;
    const named = (fields: readonly string[]) => fields.map((field) => `${field}${run}`);
    const requests = patches.map((fields, i) => {
      const attributes = valuesOf(named(fields), i);
      return i % 2 === 0
        ? client('POST', 'user', { userId, attributes })
        : { ...client('POST', 'user', { userId, attributes }), url: `/api/v2/client/${workspaceId}/user` };
    });
    noFault(await atOnce(requests));
    const { id = '' } =
      (await db.selectFrom('contacts').select('id').where('userId', '=', userId).executeTakeFirst()) ?? {};
    const rows = await db
      .selectFrom('contactAttributes')
      .innerJoin('contactAttributeKeys', 'contactAttributeKeys.id', 'contactAttributes.attributeKeyId')
      .select(['key', 'value'])
      .where('contactId', '=', id)
      .execute();
    keepsAll(Object.fromEntries(rows.map(({ key, value }) => [key.replace(/\d+$/, ''), value])), patches);
    // The workspace has room for only a few.
    await db.deleteFrom('contactAttributeKeys').where('type', '=', 'custom').execute();
    await fits();
  });
});

interface Parent {
  readonly name: string;
  /** @returns the request that deletes it, and those that create or change its rows */
  make(run: number): Promise<readonly [deletion: Request, ...children: Request[]]>;
}

const parents: readonly Parent[] = [
  {
    name: 'a survey',
    async make(run) {
      const id = await newSurvey();
      const response = await newResponse(id);
      return [
        asKey('DELETE', `${management}/surveys/${id}`),
        client('POST', 'responses', { surveyId: id, userId: `u${run}`, finished: true, data: { q1: 'x' } }),
        client('PUT', `responses/${response}`, { finished: true, data: { q1: 'y' } }),
        client('POST', 'displays', { surveyId: id, userId: `u${run}` }),
        asKey('PUT', `${management}/surveys/${id}`, { name: 'Other' }),
      ];
    },
  },
  {
    name: 'a contact',
    async make(run) {
      const userId = `person${run}`;
      const surveyId = await newSurvey();
      const user = await world.options.send(client('POST', 'user', { userId }));
      const id = JSON.parse(user.text).data.state.data.contactId;
      const display = await made(client('POST', 'displays', { surveyId, userId }));
      return [
        asKey('DELETE', `${management}/contacts/${id}`),
        client('POST', 'user', { userId, attributes: { plan: `p${run}`, email: `p${run}@example.com` } }),
        client('POST', 'responses', { surveyId, userId, displayId: display, finished: true, data: {} }),
        client('POST', 'displays', { surveyId, userId }),
        client('PUT', `displays/${display}`, { userId }),
        client('PUT', `contacts/${userId}/attributes`, { attributes: { plan: `q${run}` } }),
      ];
    },
  },
  {
    name: 'a key of attributes',
    async make(run) {
      const key = `gone${run}`;
      const id = await made(
        asKey('POST', `${management}/contact-attribute-keys`, { workspaceId, key, type: 'custom' }),
      );
      const attributes = { [key]: 'x' };
      const contact = { workspaceId, attributes: { email: `k${run}@example.com`, [key]: 'x' } };
      return [
        asKey('DELETE', `${management}/contact-attribute-keys/${id}`),
        client('POST', 'user', { userId: `k${run}`, attributes }),
        client('POST', 'user', { userId: `l${run}`, attributes }),
        asKey('POST', '/api/v2/management/contacts', contact),
        asKey('PUT', `${management}/contact-attribute-keys/${id}`, { name: 'Other' }),
      ];
    },
  },
  {
    name: 'a response with its display',
    async make() {
      const surveyId = await newSurvey();
      const display = await made(client('POST', 'displays', { surveyId }));
      const id = await made(
        client('POST', 'responses', { surveyId, displayId: display, finished: false, data: {} }),
      );
      return [
        asKey('DELETE', `${management}/responses/${id}`),
        client('PUT', `responses/${id}`, { finished: true, data: { q1: 'x' } }),
        client('PUT', `displays/${display}`, { responseId: id, userId: 'linked' }),
        asKey('DELETE', `${management}/responses/${id}`),
      ];
    },
  },
  {
    name: 'an action class',
    async make(run) {
      const key = `act${run}`;
      const id = await made(
        asKey('POST', `${management}/action-classes`, { workspaceId, name: key, type: 'code', key }),
      );
      const survey = { ...openSurvey, type: 'app', triggers: [{ actionClass: { id } }], workspaceId };
      return [
        asKey('DELETE', `${management}/action-classes/${id}`),
        asKey('POST', `${management}/surveys`, survey),
        asKey('POST', `${management}/surveys`, survey),
        asKey('PUT', `${management}/action-classes/${id}`, { workspaceId, name: key, type: 'code', key }),
      ];
    },
  },
  {
    name: 'a segment that a survey is to be shown to',
    async make(run) {
      const id = await made(asKey('POST', `${management}/segments`, { workspaceId, title: `shown${run}` }));
      const survey = { ...openSurvey, type: 'app', status: 'draft', segmentId: id, workspaceId };
      return [
        asKey('DELETE', `${management}/segments/${id}`),
        asKey('POST', `${management}/surveys`, survey),
        asKey('POST', `${management}/surveys`, survey),
        asKey('PUT', `${management}/segments/${id}`, { title: `other${run}` }),
      ];
    },
  },
];

for (const { make, name } of parents) {
  t.test(`${name} is deleted while something is added to it: nothing of it is left`, async (t) => {
    let run = 0;
    await holds(t, fc.array(fc.nat(5), { minLength: 3, maxLength: 11 }), async (order) => {
      run += 1;
      const [deletion, ...children] = await make(run);
      const chosen = order.map((i) => children[i % children.length]).filter((one) => one !== undefined);
      const at = (order[0] ?? 0) % (chosen.length + 1);
      const [deleted, ...replies] = await atOnce([deletion, ...chosen.slice(at), ...chosen.slice(0, at)]);
      noFault(replies);
      if (deleted === undefined || ![200, 404, 409].includes(deleted.status)) {
        throw new Error(`deleted: ${deleted?.status} ${deleted?.text}`);
      }
      await fits();
    });
  });
}
