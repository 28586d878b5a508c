/** A walk over the API that leaves one request and its reply per operation: the examples of the description. */
import type { Example } from '#api/docs/examples.ts';
import { isRecord } from '#api/schemas.ts';
import { type TestApi, workspaceId } from '#test/support/api-app.ts';

export type Examples = Record<string, Example>;

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

export async function walk(api: TestApi): Promise<Examples> {
  const examples: Examples = {};

  /** @param path as OpenAPI writes it @param ids by parameter @returns `data` of the reply, which must be a success */
  async function call(
    method: Method,
    path: string,
    ids: Readonly<Record<string, string>> = {},
    request?: unknown,
  ): Promise<Record<string, unknown>> {
    const url = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(ids[name] ?? workspaceId));
    const { json, status, text } = path.includes('/client/')
      ? await api.client(method, url, request, { 'user-agent': USER_AGENT })
      : await api.manage(method, url, request);
    if (status < 200 || status > 299)
      throw new Error(`${method} ${url} was answered with ${status}: ${text}`);
    const reply: unknown = json;
    examples[`${method} ${path}`] = { ...(request === undefined ? {} : { request }), reply };
    const data = isRecord(reply) ? reply.data : null;
    return isRecord(data) ? data : {};
  }

  await call('GET', '/health');
  await call('GET', '/api/v2/health');
  await call('GET', '/api/v1/me');
  await call('GET', '/api/v1/management/me');

  const actionClasses = '/api/v1/management/action-classes';
  const action = { workspaceId, name: 'Cart opened', type: 'code', key: 'cart-opened' };
  const { id: actionClassId } = await call('POST', actionClasses, {}, action);
  const actionIds = { actionClassId: String(actionClassId) };
  await call('GET', `${actionClasses}/{actionClassId}`, actionIds);
  await call('PUT', `${actionClasses}/{actionClassId}`, actionIds, {
    ...action,
    description: 'The cart was looked at',
  });
  await call('GET', actionClasses);

  const surveys = '/api/v1/management/surveys';
  const survey = await call('POST', surveys, {}, newSurvey(String(actionClassId)));
  const surveyId = String(survey.id);
  await call('GET', `${surveys}/{surveyId}`, { surveyId });
  await call('PUT', `${surveys}/{surveyId}`, { surveyId }, { name: 'Checkout', recontactDays: 7 });
  await call('GET', surveys);
  const link = await call(
    'POST',
    surveys,
    {},
    {
      workspaceId,
      name: 'Once',
      type: 'link',
      status: 'inProgress',
      pin: '1234',
      singleUse: { enabled: true, isEncrypted: false },
      questions: [{ id: 'q1', type: 'openText', headline: { default: 'What?' } }],
    },
  );
  await call('GET', `${surveys}/{surveyId}/singleUseIds`, { surveyId: String(link.id) });
  for (const version of ['v1', 'v2']) {
    const pin = `/api/${version}/client/{workspaceId}/surveys/{surveyId}/pin`;
    await call('POST', pin, { surveyId: String(link.id) }, { pin: '1234' });
  }
  await call('DELETE', `${surveys}/{surveyId}`, { surveyId: String(link.id) });
  examples[`POST ${surveys}`] = { request: newSurvey(String(actionClassId)), reply: { data: survey } };

  for (const version of ['v1', 'v2'] as const) {
    const client = `/api/${version}/client/{workspaceId}`;
    await call('GET', `${client}/environment`);
    const userId = `user-${version}`;
    const attributes = { email: `${version}@example.com`, plan: 'pro' };
    const user = await call('POST', `${client}/user`, {}, { userId, attributes });
    const who = version === 'v1' ? { userId } : { contactId: contactIdIn(user) };
    const display = await call('POST', `${client}/displays`, {}, { surveyId, ...who });
    const response = await call(
      'POST',
      `${client}/responses`,
      {},
      {
        surveyId,
        ...who,
        displayId: display.id,
        finished: false,
        data: { why: 'Found what I wan' },
        ttc: { why: 2500 },
        meta: { url: 'https://shop.example/cart', action: 'Cart opened' },
      },
    );
    await call(
      'PUT',
      `${client}/responses/{responseId}`,
      { responseId: String(response.id) },
      {
        finished: true,
        data: { why: 'Found what I wanted', score: 9 },
        ttc: { why: 4200, score: 900 },
      },
    );
    await call(
      'POST',
      `${client}/storage`,
      {},
      { fileName: 'bill.pdf', fileType: 'application/pdf', surveyId },
    );
    if (version === 'v2') continue;
    await call('GET', `${client}/displays/{displayId}/response`, { displayId: String(display.id) });
    const linked = { responseId: response.id, userId };
    await call('PUT', `${client}/displays/{displayId}`, { displayId: String(display.id) }, linked);
    for (const kind of ['contacts', 'people']) {
      await call('PUT', `${client}/${kind}/{userId}/attributes`, { userId }, { attributes: { team: kind } });
      await call('GET', `${client}/identify/${kind}/{userId}`, { userId });
    }
  }

  const responses = '/api/v1/management/responses';
  const response = await call(
    'POST',
    responses,
    {},
    {
      surveyId,
      finished: true,
      data: { why: 'Told us on the phone', score: 10 },
      language: 'default',
      createdAt: '2026-01-02T03:04:05.678Z',
    },
  );
  const responseId = String(response.id);
  await call('GET', `${responses}/{responseId}`, { responseId });
  await call('PUT', `${responses}/{responseId}`, { responseId }, { data: { score: 8 }, finished: true });
  await call('GET', responses);
  await call('DELETE', `${responses}/{responseId}`, { responseId });

  const webhooks = '/api/v1/webhooks';
  const webhook = await call('POST', webhooks, {}, { workspaceId, ...toOurDesk, surveyIds: [surveyId] });
  const webhookIds = { webhookId: String(webhook.id) };
  await call('GET', `${webhooks}/{webhookId}`, webhookIds);
  await call('GET', `${webhooks}/{webhookId}/deliveries`, webhookIds);
  await call('PUT', `${webhooks}/{webhookId}`, webhookIds, { name: 'To our other desk' });
  await call('GET', webhooks);
  await call('DELETE', `${webhooks}/{webhookId}`, webhookIds);

  const keys = '/api/v1/management/contact-attribute-keys';
  const key = await call('POST', keys, {}, { workspaceId, key: 'seats', type: 'custom', name: 'Seats' });
  const keyIds = { contactAttributeKeyId: String(key.id) };
  await call('GET', `${keys}/{contactAttributeKeyId}`, keyIds);
  await call('PUT', `${keys}/{contactAttributeKeyId}`, keyIds, { name: 'Seats bought' });
  await call('GET', keys);
  await call('DELETE', `${keys}/{contactAttributeKeyId}`, keyIds);

  const classes = '/api/v1/management/attribute-classes';
  const made = await call('POST', classes, {}, { environmentId: workspaceId, name: 'size', type: 'code' });
  const classIds = { attributeClassId: String(made.id) };
  await call('GET', `${classes}/{attributeClassId}`, classIds);
  await call('PUT', `${classes}/{attributeClassId}`, classIds, {
    name: 'size',
    description: 'Of the company',
  });
  await call('GET', classes);
  await call('DELETE', `${classes}/{attributeClassId}`, classIds);

  await callV2(surveyId);

  const upload = { workspaceId, fileName: 'logo.png', fileType: 'image/png' };
  await call('POST', '/api/v1/management/storage', {}, upload);

  await call('GET', '/api/v1/management/contact-attributes');
  const people = await api.manage('GET', '/api/v1/management/people');
  const [first, second] = people.json.data;
  await call('GET', '/api/v1/management/people');
  await call('GET', '/api/v1/management/people/{personId}', { personId: first.id });
  await call('GET', '/api/v1/management/contacts');
  await call('GET', '/api/v1/management/contacts/{contactId}', { contactId: second.id });
  await call('DELETE', '/api/v1/management/people/{personId}', { personId: first.id });
  await call('DELETE', '/api/v1/management/contacts/{contactId}', { contactId: second.id });
  await call('DELETE', `${actionClasses}/{actionClassId}`, actionIds);

  for (const [path, alias] of [
    ['/api/v1/management/surveys', '/api/v1/surveys'],
    ['/api/v1/management/responses', '/api/v1/responses'],
  ] as const) {
    for (const [name, example] of Object.entries(examples)) {
      if (name.includes(` ${path}`)) examples[name.replace(path, alias)] = example;
    }
  }
  // Last, so that the ids before it stay as they are.
  await call('GET', '/ready');
  return examples;

  async function callV2(surveyId: string): Promise<void> {
    const v2 = '/api/v2/management';
    await call('GET', '/api/v2/me');
    await call('GET', '/api/v2/roles');

    const answered = { surveyId, finished: true, data: { why: 'Heard of you', score: 7 } };
    const id = String((await call('POST', `${v2}/responses`, {}, answered)).id);
    await call('GET', `${v2}/responses`);
    await call('GET', `${v2}/responses/{id}`, { id });
    await call('PUT', `${v2}/responses/{id}`, { id }, { data: { why: 'Heard of you from a friend' } });
    await call('DELETE', `${v2}/responses/{id}`, { id });

    const target = { ...toOurDesk, source: 'user', surveyIds: [surveyId] };
    const hook = { id: String((await call('POST', `${v2}/webhooks`, {}, { workspaceId, ...target })).id) };
    await call('GET', `${v2}/webhooks`);
    await call('GET', `${v2}/webhooks/{id}`, hook);
    await call('PUT', `${v2}/webhooks/{id}`, hook, { name: 'To our other desk' });
    await call('DELETE', `${v2}/webhooks/{id}`, hook);

    const keys = `${v2}/contact-attribute-keys`;
    const seats = { workspaceId, key: 'seats', name: 'Seats', description: 'Bought', dataType: 'number' };
    const key = { id: String((await call('POST', keys, {}, seats)).id) };
    await call('GET', keys);
    await call('GET', `${keys}/{id}`, key);
    await call('PUT', `${keys}/{id}`, key, { description: 'Bought this year' });
    await call('DELETE', `${keys}/{id}`, key);

    const contact = { workspaceId, attributes: { email: 'ada@example.com', firstName: 'Ada' } };
    const { id: contactId } = await call('POST', `${v2}/contacts`, {}, contact);
    const link = { workspaceId, name: 'For Ada', type: 'link', questions: [plainQuestion] };
    const forAda = await api.manage('POST', '/api/v1/management/surveys', link);
    await call('GET', `${v2}/surveys/{surveyId}/contact-links/contacts/{contactId}`, {
      surveyId: forAda.json.data.id,
      contactId: String(contactId),
    });
    const attributes = [
      { attributeKey: { key: 'email', name: 'Email' }, value: 'grace@example.com' },
      { attributeKey: { key: 'rank', name: 'Rank' }, value: 'Rear admiral' },
    ];
    await call('PUT', `${v2}/contacts/bulk`, {}, { workspaceId, contacts: [{ attributes }] });
  }
}

const plainQuestion = { id: 'q1', type: 'openText', headline: { default: 'What?' } };

const toOurDesk = {
  name: 'To our desk',
  url: 'https://93.184.216.34/hooks',
  triggers: ['responseFinished'],
};

const USER_AGENT =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36';

function newSurvey(actionClassId: string) {
  return {
    workspaceId,
    name: 'After the checkout',
    type: 'app',
    status: 'inProgress',
    triggers: [{ actionClass: { id: actionClassId } }],
    questions: [
      { id: 'why', type: 'openText', headline: { default: 'What made you come?' }, required: true },
      {
        id: 'score',
        type: 'nps',
        headline: { default: 'How likely are you to recommend us?' },
        required: false,
        lowerLabel: { default: 'Not likely' },
        upperLabel: { default: 'Very likely' },
      },
      {
        id: 'bill',
        type: 'fileUpload',
        headline: { default: 'Your bill, if something is wrong with it' },
        required: false,
        allowMultipleFiles: false,
      },
    ],
    endings: [{ id: 'thanks', type: 'endScreen', headline: { default: 'Thank you' } }],
  };
}

function contactIdIn(user: Record<string, unknown>): unknown {
  const state = isRecord(user.state) && isRecord(user.state.data) ? user.state.data : {};
  return state.contactId;
}
