/** Calls at the same time. The rest is in test/conversations/attribute-keys.md. */
import t from 'tap';
import { startApi, workspaceId } from '#test/support/api-app.ts';

t.test('POST 409: of concurrent calls one creates the key', async (t) => {
  const api = await startApi(t);
  const replies = await Promise.all(
    [1, 2, 3].map(() =>
      api.manage('POST', '/api/v2/management/contact-attribute-keys', { workspaceId, key: 'race' }),
    ),
  );
  t.strictSame(replies.map(({ status }) => status).sort(), [201, 409, 409]);
});
