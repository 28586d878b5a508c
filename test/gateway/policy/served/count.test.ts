/** `count` and an application that is away. What replies count is in test/policies/count.yaml. */
import t, { type Test } from 'tap';
import { policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';
import { EACH_STORE } from '#test/support/stores.ts';
import { insideLongWindow } from '#test/support/window.ts';

const POLICIES = policyFile(
  'name: failures, route: "POST /login", identifier: ip, limit: 5, window: 366d, count: failure',
  'name: successes, route: "POST /codes", identifier: ip, limit: 5, window: 366d, count: success',
  'name: all, route: "* /*", identifier: ip, limit: 100000, window: 366d',
);

/** Answers with the status that the header `x-status` names. */
async function started(t: Test, env: Record<string, string>, upstream?: string): Promise<{ origin: string }> {
  const application = await startUpstream(t, (req, res) => {
    res.writeHead(Number(req.headers['x-status'])).end();
  });
  return startTestGateway(t, { upstream: upstream ?? application.origin, policies: POLICIES, env });
}

async function ask(origin: string, path: string, status: number): Promise<[number, string | null]> {
  const reply = await fetch(origin + path, {
    method: 'POST',
    headers: { 'x-status': String(status) },
    redirect: 'manual',
  });
  await reply.arrayBuffer();
  const isDenied = reply.headers.get('x-gateway-ratelimited') === 'true';
  return [
    isDenied ? -1 : reply.status,
    /"failures";r=(\d+)/.exec(reply.headers.get('ratelimit') ?? '')?.[1] ?? null,
  ];
}

for (const [name, environment] of Object.entries(EACH_STORE)) {
  t.test(`${name}: a 502 of the gateway counts neither as failure nor as success`, async (t) => {
    await insideLongWindow();
    const { origin } = await started(t, await environment(t), `http://127.0.0.1:${await freePort()}`);
    for (let i = 0; i < 8; i++) {
      t.equal((await ask(origin, '/login', 200))[0], 502, 'a 502 of the gateway is no failure of the client');
      t.equal((await ask(origin, '/codes', 200))[0], 502, 'a 502 of the gateway is no success');
    }
  });
}
