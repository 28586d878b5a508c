import t from 'tap';
import { createPasswords } from '#api/auth/password.ts';
import { ApiError } from '#api/errors.ts';
import { limitConcurrency } from '#api/work/concurrency.ts';
import { startApi } from '#test/support/api-app.ts';
import { openBrowser } from '#test/support/login.ts';

/** Returns work that ends on request of the test. */
function heldWork() {
  const started: number[] = [];
  const ends = new Map<number, (error?: Error) => void>();
  const work = (i: number): Promise<number> =>
    new Promise((resolve, reject) => {
      started.push(i);
      ends.set(i, (error) => (error === undefined ? resolve(i) : reject(error)));
    });
  return { started, work, end: (i: number, error?: Error) => ends.get(i)?.(error) };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

t.test('runs a few at once, in order, and a failure gives its place back', async (t) => {
  const { started, work, end } = heldWork();
  const turn = limitConcurrency(work, { runningMax: 2, waitingMax: 2, retryAfterSeconds: 7 });
  const [first, second, third, fourth] = [turn(1), turn(2), turn(3), turn(4)];
  t.strictSame(started, [1, 2]);

  const refusal = await turn(5).catch((error: unknown) => error);
  t.ok(refusal instanceof ApiError);
  t.match(refusal, { statusCode: 429, retryAfterSeconds: 7 });

  end(2, new Error('broken'));
  await t.rejects(second, /broken/);
  await settled();
  t.strictSame(started, [1, 2, 3], 'the longest waiting task runs first');
  end(1);
  t.equal(await first, 1);
  await settled();
  t.strictSame(started, [1, 2, 3, 4]);
  end(3);
  end(4);
  t.strictSame(await Promise.all([third, fourth]), [3, 4]);

  const sixth = turn(6);
  t.strictSame(started, [1, 2, 3, 4, 6], 'a task runs at once if none waits before it');
  end(6);
  t.equal(await sixth, 6);
});

t.test('hashes two passwords at once, and lets a hundred wait, of known accounts or not', async (t) => {
  let busy = 0;
  let busyMax = 0;
  const { promise: gate, resolve: release } = Promise.withResolvers<void>();
  const passwords = createPasswords(
    (bytes) => new Uint8Array(bytes),
    async () => {
      busy += 1;
      busyMax = Math.max(busyMax, busy);
      await gate;
      busy -= 1;
      return Buffer.alloc(32);
    },
  );
  const all = Array.from({ length: 150 }, (_, i) =>
    (i % 2 === 0 ? passwords.verify('Wrong1234', null) : passwords.hash('Wrong1234')).catch(
      (error: unknown) => (error instanceof ApiError ? error.code : error),
    ),
  );
  await settled();
  release();
  const answers = await Promise.all(all);
  t.equal(answers.filter((answer) => answer === 'too_many_requests').length, 150 - 102);
  t.equal(busyMax, 2);
});

t.test('a flood of logins: the excess gets 429 with Retry-After, and other requests go on', async (t) => {
  const { promise: gate, resolve: release } = Promise.withResolvers<void>();
  const api = await startApi(t, {
    parts: ({ random }) => ({
      passwords: createPasswords(random, async () => {
        await gate;
        return Buffer.alloc(32);
      }),
    }),
  });
  const browser = openBrowser(api);
  const form = new URLSearchParams({
    csrfToken: (await browser.call('GET', '/api/auth/csrf')).json.csrfToken,
    json: 'true',
    email: 'nobody@example.com',
    password: 'Wrong1234',
  }).toString();
  const logins = Array.from({ length: 120 }, () =>
    browser.call('POST', '/api/auth/callback/credentials', form),
  );
  const refused = await Promise.any(
    logins.map(async (login) => {
      const reply = await login;
      if (reply.status !== 429) throw new Error(`${reply.status}`);
      return reply;
    }),
  );
  t.match(refused.json, { code: 'too_many_requests', message: String, details: {} });
  t.equal(refused.headers['retry-after'], '2');
  t.equal((await api.client('GET', '/api/v2/health')).status, 200, 'others are answered meanwhile');
  release();
  const statuses = (await Promise.all(logins)).map(({ status }) => status);
  t.strictSame([...new Set(statuses)].sort(), [401, 429]);
});
