/** Costs of bodies over real connections. What costs take of a limit is in test/policies/cost.yaml. */
import t from 'tap';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';

/** A body whose length is not announced. */
function unannounced(): ReadableStream {
  return new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode('x'));
      controller.close();
    },
  });
}

t.test('a body of unknown length costs the whole limit, and a larger one can never pass', async (t) => {
  const { origin } = await startTestGateway(t, {
    clock: () => 0,
    policies: policyFile(
      'name: bytes, route: PUT /*, identifier: ip, limit: 100, window: 1m, cost: body-bytes',
    ),
  });
  const put = (body: string | ReadableStream, path: string): Promise<Response> =>
    fetch(`${origin}/${path}`, { method: 'PUT', body, duplex: 'half' });
  const large = await put('x'.repeat(101), 'large');
  t.equal(large.status, 429);
  t.equal(large.headers.get('retry-after'), null, 'no wait would help');
  t.match(await large.json(), {
    code: 'gateway_rate_limited',
    message: /more of policy bytes than can ever be used at once, 100 bytes.*send less/,
  });
  const { status, headers } = await put(unannounced(), 'stream');
  t.strictSame([status, headers.get('x-ratelimit-remaining')], [200, '0']);
  const denied = await put('x', 'small');
  t.match(await denied.json(), { message: /policy bytes allows 100 bytes in 60 seconds/ });
});
