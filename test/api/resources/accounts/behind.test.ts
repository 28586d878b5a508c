/**
 * Requests for new passwords and verification mails are answered before any lookup, so the time reveals nothing about
 * accounts. The test delays the work and checks the queries up to the reply.
 */
import type { KyselyPlugin } from 'kysely';
import t, { type Test } from 'tap';
import { startApi, type TestApi } from '#test/support/api-app.ts';
import { column } from '#test/support/column.ts';
import { mailsOf } from '#test/support/mails.ts';

const me = { name: 'Zoe', email: 'zoe@example.com', password: 'Password1' };

/** Starts an API that records the queries of its routes. */
async function begin(t: Test, env: Record<string, string> = {}) {
  const queries: string[] = [];
  const noting: KyselyPlugin = {
    transformQuery({ node }) {
      queries.push(node.kind);
      return node;
    },
    transformResult: async ({ result }) => result,
  };
  const api = await startApi(t, { env, parts: ({ db }) => ({ db: db.withPlugin(noting) }) });
  return { api, queries };
}

const mailsTo = async (api: TestApi, kind: string) => column(await mailsOf(api, kind), 'recipient');

const cases = [
  { path: 'forgot-password', kind: 'resetPassword', known: 'owner@example.com' },
  { path: 'resend-verification', kind: 'verifyEmail', known: me.email },
] as const;
for (const { path, kind, known } of cases) {
  t.test(`${path}: the same work before the reply, for known and unknown addresses`, async (t) => {
    const { api, queries } = await begin(t);
    await api.client('POST', '/api/auth/signup', me);
    const before = await mailsTo(api, kind);
    const held = Promise.withResolvers<void>();
    const first = new Promise<void>((resolve) => {
      api.context.background.add(async () => {
        resolve();
        await held.promise;
      });
    });
    await first;
    const answers = [];
    for (const email of [known, 'nobody@example.com']) {
      queries.length = 0;
      const { statusCode, body } = await api.app.inject({
        method: 'POST',
        url: `/api/auth/${path}`,
        payload: JSON.stringify({ email }),
      });
      answers.push({ statusCode, body, queries: [...queries] });
    }
    t.equal(answers[0]?.statusCode, 200);
    t.strictSame(answers[0], answers[1]);
    t.strictSame(await mailsTo(api, kind), before, 'the mail is written after the reply');
    held.resolve();
    await api.context.background.idle();
    t.strictSame(await mailsTo(api, kind), [...before, known]);
  });
}
