/** Follow-up mails are sent after a finished response. */
import { pino } from 'pino';
import t from 'tap';
import { textOf } from '#api/jobs/follow-up-mail.ts';
import { acceptFollowUps } from '#api/jobs/follow-ups.ts';
import { type EventApi, startEventApi } from '#test/api/events/support.ts';
import { addSurvey } from '#test/support/api-app.ts';
import { column } from '#test/support/column.ts';
import { mailsOf } from '#test/support/mails.ts';

function followUp(
  properties: Record<string, unknown> = {},
  trigger: unknown = { type: 'response', properties: null },
) {
  return {
    id: `f${JSON.stringify(properties).length}`,
    name: 'Thanks',
    trigger,
    action: {
      type: 'send-email',
      properties: {
        to: 'team@example.com',
        from: 'noreply@example.com',
        replyTo: [],
        subject: 'Thanks',
        body: 'Thank you',
        attachResponseData: false,
        ...properties,
      },
    },
  };
}

const questions = [
  { id: 'mail', type: 'openText', inputType: 'email', headline: 'Your <b>address</b>?', required: false },
  {
    id: 'who',
    type: 'contactInfo',
    headline: 'Who are you?',
    required: false,
    ...Object.fromEntries(
      ['firstName', 'lastName', 'email', 'phone', 'company'].map((part) => [
        part,
        { show: true, required: false, placeholder: { default: '' } },
      ]),
    ),
  },
  { id: 'q1', type: 'openText', headline: 'What?', required: false },
];

async function finish(api: EventApi, surveyId: string, fields: Record<string, unknown> = {}): Promise<void> {
  const body = { surveyId, finished: true, data: { q1: 'x' }, ...fields };
  const reply = await api.manage('POST', '/api/v1/management/responses', body);
  if (reply.status !== 200) throw new Error(reply.text);
  await api.worker.idle();
}

t.test('only a finished response sends a follow-up, and again each time it is finished', async (t) => {
  const api = await startEventApi(t);
  const survey = await addSurvey(api, { followUps: [followUp()] });
  const path = '/api/v1/management/responses';
  const { id } = (await api.manage('POST', path, { surveyId: survey.id, data: {}, finished: false })).json
    .data;
  await api.manage('PUT', `${path}/${id}`, { data: { q1: 'a' } });
  await api.worker.idle();
  t.same(await mailsOf(api), []);
  await api.manage('PUT', `${path}/${id}`, { finished: true });
  await api.worker.idle();
  const mail = {
    kind: 'surveyFollowUp',
    recipient: 'team@example.com',
    replyTo: null,
    subject: 'Thanks',
    body: 'Thank you',
  };
  t.match(await mailsOf(api), [mail]);
  await api.manage('PUT', `${path}/${id}`, { data: { q1: 'b' } });
  await api.worker.idle();
  t.match(await mailsOf(api), [mail, mail], 'finishing again sends the mail again');

  const trigger = { type: 'endings', properties: { endingIds: ['good'] } };
  const ending = await addSurvey(api, { followUps: [followUp({}, trigger)] });
  await finish(api, ending.id);
  await finish(api, ending.id, { endingId: 'bad' });
  t.equal((await mailsOf(api)).length, 2, 'a follow-up for certain endings is sent only at one of them');
  await finish(api, ending.id, { endingId: 'good' });
  t.equal((await mailsOf(api)).length, 3);
});

t.test('sends to an address, an answer, an attribute of the contact, or a hidden field', async (t) => {
  const api = await startEventApi(t);
  const survey = await addSurvey(api, {
    questions,
    hiddenFields: { enabled: true, fieldIds: ['ref'] },
    followUps: ['Fixed@Example.com', 'mail', 'who', 'ref', 'q1', 'unknown', 'constructor'].map((to) =>
      followUp({ to }),
    ),
  });
  await finish(api, survey.id, {
    data: {
      mail: ' A@example.com',
      who: ['Ada', 'L', 'ada@example.com', '', ''],
      ref: 'ref@example.com',
      q1: 'a@example.com, b@example.com',
    },
  });
  t.same(column(await mailsOf(api), 'recipient').sort(), [
    'a@example.com',
    'ada@example.com',
    'fixed@example.com',
    'ref@example.com',
  ]);
});

t.test('the mail has text without markup, recalled answers, and the response on request', async (t) => {
  const api = await startEventApi(t);
  const survey = await addSurvey(api, {
    questions,
    hiddenFields: { enabled: true, fieldIds: ['ref'] },
    variables: [
      { id: 'v1', name: 'score', type: 'number', value: 3 },
      { id: 'constructor', name: 'plan', type: 'text', value: 'free' },
    ],
    followUps: [
      followUp({
        subject: 'Hello #recall:q1/fallback:you#',
        body: '<p>Dear #recall:name/fallback:friendnbsp#,</p><p>you said &quot;#recall:q1/fallback:nothing#&quot; &amp;lt; #recall:v1/fallback:0#<br>Bye</p>',
        replyTo: ['nonsense', 'Reply@example.com', 'other@example.com'],
        attachResponseData: true,
      }),
    ],
  });
  await finish(api, survey.id, {
    data: { q1: '<b>bold</b>\r\nBcc: x@example.com', who: ['Ada', '', '', '', 'Acme'], ref: 'r1' },
    variables: { v1: 7 },
  });
  const [mail] = await mailsOf(api);
  t.equal(mail?.subject, 'Hello <b>bold</b> Bcc: x@example.com', 'the subject has no line break');
  t.equal(mail?.replyTo, 'reply@example.com');
  t.equal(
    mail?.body,
    [
      'Dear friend,',
      'you said "<b>bold</b>\r\nBcc: x@example.com" &lt; 7',
      'Bye',
      '',
      'Who are you?',
      'Ada, Acme',
      '',
      'What?',
      '<b>bold</b>\r\nBcc: x@example.com',
    ].join('\n'),
  );
});

t.test('sends fifty mails an hour for each organization, and webhooks do not count', async (t) => {
  const lines: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
  const api = await startEventApi(t, { env: { RATE_LIMITING_DISABLED: '0' }, log });
  const survey = await addSurvey(api, { followUps: [followUp()] });
  for (let i = 0; i < 52; i += 1) await finish(api, survey.id);
  t.equal((await mailsOf(api)).length, 50);
  t.equal(lines.filter((line) => line.includes('over the limit')).length, 2);
  api.advance(3_600_000);
  await finish(api, survey.id);
  t.equal((await mailsOf(api)).length, 51);
});

t.test('two processes that read the same events charge the limit once', async (t) => {
  const api = await startEventApi(t, { env: { RATE_LIMITING_DISABLED: '0' } });
  await api.worker.stop();
  const survey = await addSurvey(api, { followUps: [followUp()] });
  for (let i = 0; i < 40; i += 1) await finish(api, survey.id);
  const drain = async (): Promise<void> => {
    while ((await acceptFollowUps(api.context, { warn: () => undefined })) > 0);
  };
  await Promise.all([drain(), drain()]);
  t.equal((await mailsOf(api)).length, 40, '40 mails are below the limit of 50');
});

t.test('at most ten follow-ups for each response; a deleted survey sends none', async (t) => {
  const api = await startEventApi(t);
  const many = Array.from({ length: 15 }, (_, i) => followUp({ to: `a${i}@example.com` }));
  const survey = await addSurvey(api, { followUps: many });
  await finish(api, survey.id);
  t.equal((await mailsOf(api)).length, 10);
  await api.worker.stop();
  await finish(api, survey.id);
  await api.manage('DELETE', `/api/v1/management/surveys/${survey.id}`);
  t.equal(await acceptFollowUps(api.context, { warn: () => {} }), 1);
  t.equal((await mailsOf(api)).length, 10);
});

t.test('turns markup into text', async (t) => {
  const html =
    '<h1 class="x">Head</h1><p>1 < 2 and 3 > 2</p><p><a href="https://x.example">link</a><br/>b<br >c';
  t.equal(textOf(html), 'Head\n1 < 2 and 3 > 2\nlink\nb\nc');
  t.equal(textOf('&amp;lt;script&gt;<script>alert(1)</script>'), '&lt;script>alert(1)');
});

t.test('recalled answers do not make a text longer than a mail may be', async (t) => {
  const api = await startEventApi(t);
  const recalls = '#recall:q1/fallback:x#'.repeat(10_000);
  const survey = await addSurvey(api, {
    questions,
    followUps: [followUp({ subject: recalls, body: recalls })],
  });
  await finish(api, survey.id, { data: { q1: 'y'.repeat(60_000) } });
  const [mail] = await mailsOf(api, 'surveyFollowUp');
  t.equal(mail?.body, 'y'.repeat(100_000));
});
