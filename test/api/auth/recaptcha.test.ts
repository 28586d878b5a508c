/**
 * Surveys may require a reCAPTCHA token. Its issuer decides whether it is valid, and without keys no token is required.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import t from 'tap';
import { createRecaptcha } from '#api/auth/recaptcha.ts';
import { readConfig } from '#api/config.ts';
import { ConfigError } from '#shared/configuration.ts';
import { addSurvey, startApi, type TestApi, workspaceId } from '#test/support/api-app.ts';

const keys = { siteKey: 'site-key', secretKey: 'secret_key' };
const failed = { code: 'recaptcha_verification_failed' };

t.test('verifies a token', async (t) => {
  const asked: string[] = [];
  let verdict = '';
  const server = createServer(async (request, response) => {
    const body = await request.toArray();
    asked.push(Buffer.concat(body).toString());
    response.end(verdict);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no port');
  const recaptcha = createRecaptcha(keys, `http://127.0.0.1:${address.port}/siteverify`);
  const says = (text: string): Promise<boolean> => {
    verdict = text;
    return recaptcha.verify('a token&x', 0.5);
  };

  t.equal(await says('{"success":true,"score":0.5}'), true);
  t.equal(asked.at(-1), 'secret=secret_key&response=a+token%26x');
  t.equal(await says('{"success":true,"score":0.4}'), false, 'the score is below the threshold');
  t.equal(await says('{"success":false,"score":0.9}'), false);
  t.equal(await says('{"success":true}'), false, 'a reply without a score is refused');
  t.equal(await says('null'), false);
  t.equal(await says('<html>'), false);
  const before = asked.length;
  t.equal(await recaptcha.verify('x'.repeat(20_000), 0.5), false);
  t.equal(asked.length, before, 'a text that cannot be a token is not sent');
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
  t.equal(await says('{"success":true,"score":1}'), false, 'the service is unreachable');
});

async function start(isConfigured: boolean): Promise<TestApi> {
  return startApi(
    t,
    isConfigured
      ? {
          parts: () => ({
            recaptcha: { siteKey: keys.siteKey, verify: async (token) => token === 'of a person' },
          }),
        }
      : {},
  );
}
const enabled = { recaptcha: { enabled: true, threshold: 0.5 } };

for (const version of ['v1', 'v2']) {
  t.test(`a response needs a valid token, ${version}`, async (t) => {
    const api = await start(true);
    const survey = await addSurvey(api, enabled);
    const create = (surveyId: string, fields: object) =>
      api.client('POST', `/api/${version}/client/${workspaceId}/responses`, {
        surveyId,
        finished: false,
        data: {},
        ...fields,
      });
    const missing = await create(survey.id, {});
    t.match(missing, { status: 400, json: { message: 'Missing recaptcha token', details: failed } });
    const wrong = await create(survey.id, { recaptchaToken: 'of a robot' });
    t.match(wrong, { status: 400, json: { message: 'reCAPTCHA verification failed', details: failed } });
    t.equal((await create(survey.id, { recaptchaToken: 'of a person' })).status, 200);
    const open = await addSurvey(api);
    t.equal((await create(open.id, {})).status, 200, 'other surveys need no token');
  });
}

t.test('v1 checks the token before the single-use link, v2 after it', async (t) => {
  const api = await start(true);
  const survey = await addSurvey(api, { ...enabled, singleUse: { enabled: true, isEncrypted: true } });
  for (const [version, message] of [
    ['v1', 'Missing recaptcha token'],
    ['v2', 'Missing single use id'],
  ]) {
    const url = `/api/${version}/client/${workspaceId}/responses`;
    const body = { surveyId: survey.id, finished: false, data: {} };
    t.equal((await api.client('POST', url, body)).json.message, message);
  }
});

t.test('the workspace state has the site key if it is set; without keys no token is needed', async (t) => {
  const url = `/api/v1/client/${workspaceId}`;
  const configured = await start(true);
  const state = await configured.client('GET', `${url}/environment`);
  t.equal(state.json.data.data.recaptchaSiteKey, keys.siteKey);

  const plain = await start(false);
  t.notOk('recaptchaSiteKey' in (await plain.client('GET', `${url}/environment`)).json.data.data);
  const survey = await addSurvey(plain, enabled);
  const body = { surveyId: survey.id, finished: false, data: {} };
  t.equal((await plain.client('POST', `${url}/responses`, body)).status, 200);
});

t.test('one key of the pair without the other is a configuration error', async (t) => {
  const problem = /RECAPTCHA_SECRET_KEY: a key pair has two parts/;
  t.throws(() => readConfig({ RECAPTCHA_SITE_KEY: 'x' }, '/'), { message: problem });
  t.throws(() => readConfig({ RECAPTCHA_SECRET_KEY: 'x' }, '/'), { message: problem });
  t.throws(() => readConfig({ RECAPTCHA_SITE_KEY: 'a b', RECAPTCHA_SECRET_KEY: 'x' }, '/'), ConfigError);
  const { secrets } = readConfig({ RECAPTCHA_SITE_KEY: 'a', RECAPTCHA_SECRET_KEY: 'b' }, '/');
  t.strictSame(secrets.recaptcha, { siteKey: 'a', secretKey: 'b' });
});
