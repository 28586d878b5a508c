/** The library that receivers use accepts our signatures. */
import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import t from 'tap';
import { signedHeaders } from '#api/events/worker.ts';

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const body = '{"event":"responseCreated","text":"größer ✓"}';

t.test('a receiver can verify a signature', async (t) => {
  const headers = signedHeaders({ id: 'c1', time: Date.now(), body, secret });
  t.same(new Webhook(secret).verify(body, { ...headers }), JSON.parse(body));
});

t.test('another body, id, time or secret fails the verification', async (t) => {
  const headers = signedHeaders({ id: 'c1', time: Date.now(), body, secret });
  const webhook = new Webhook(secret);
  t.throws(() => webhook.verify(`${body} `, { ...headers }));
  t.throws(() => webhook.verify(body, { ...headers, 'webhook-id': 'c2' }));
  const earlier = String(Number(headers['webhook-timestamp']) - 1);
  t.throws(() => webhook.verify(body, { ...headers, 'webhook-timestamp': earlier }));
  const other = new Webhook(`whsec_${Buffer.alloc(32, 8).toString('base64')}`);
  t.throws(() => other.verify(body, { ...headers }));
});

t.test('the signed time is that of the attempt, in seconds', async (t) => {
  const headers = signedHeaders({ id: 'c1', time: 1_700_000_000_999, body, secret });
  t.equal(headers['webhook-timestamp'], '1700000000');
  const expected = createHmac('sha256', Buffer.alloc(32, 7)).update(`c1.1700000000.${body}`).digest('base64');
  t.equal(headers['webhook-signature'], `v1,${expected}`);
});
