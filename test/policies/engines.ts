/** Ways to ask for decisions: each takes the requests of one document of test/policies in turn. */
import type { Test } from 'tap';
import type { PolicySet, PolicyTest } from '#gateway/policy/policy-set.ts';
import { recordOf } from '#gateway/reply/own-reply.ts';
import { Rehearsal } from '#gateway/workbench/rehearsal/rehearsal.ts';
import { applyingOf, priorityOf, replyTo } from '#gateway/workbench/rehearsal/rehearsed.ts';
import type { Millis } from '#shared/clock.ts';
import { type Answer, send } from '#test/gateway/proxy/exchange.ts';
import { BEHIND_PROXY, startTestGateway, startUpstream, type TestGateway } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';

/** What one request got. */
export interface Seen {
  readonly status: number;
  /** Whether the application is asked. */
  readonly passes: boolean;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** Policies that mark the request. */
  readonly marked?: readonly string[];
  /** Policies that apply, and the priority: no reply tells them. */
  readonly policies?: readonly string[];
  readonly priority?: string | null;
}

export type Ask = (step: PolicyTest, i: number) => Promise<Seen>;

export interface Document {
  /** The policy file. */
  readonly text: string;
  readonly set: PolicySet;
  readonly steps: readonly PolicyTest[];
  /** Of the first step. */
  readonly at: Millis;
}

/** Decides without a socket, as `npx floodgate check` does. */
export async function rehearse(_: Test, { set, at }: Document): Promise<Ask> {
  const rehearsal = new Rehearsal(set, { clock: () => at });
  return async (step, i) => {
    const { method, target, rawHeaders, bodies, from, plan } = step;
    const socket = { remoteAddress: from[i % from.length] };
    const body = bodies[i % bodies.length];
    const request = { method, target, rawHeaders, body, socket, plan: plan ?? undefined };
    const asked = rehearsal.ask(request);
    if (asked.kind === 'allow') rehearsal.answered(asked, step.reply, step.replyHeaders, step.replyBytes);
    else if (asked.kind === 'uncovered') rehearsal.learn(asked, step.reply);
    const { status, headers } = replyTo(asked, at, rehearsal.askingOf(request));
    return {
      status: status ?? step.reply,
      passes: status === null,
      headers: Object.fromEntries(
        Object.entries(recordOf(headers)).map(([name, value]) => [name.toLowerCase(), value]),
      ),
      marked: asked.kind === 'allow' ? asked.decision.marks.map(({ name }) => name) : [],
      policies: applyingOf(asked).map(({ name }) => name),
      priority: priorityOf(asked),
    };
  };
}

/** Names each reply of the application. */
const PASSED = 'x-application';

/** @returns asks gateways with these settings in turn, in front of an application that replies as the step says */
export function serve(
  count: number,
  env: Readonly<Record<string, string>>,
  clock: (at: Millis) => (() => Millis) | undefined,
) {
  return async (t: Test, { text, at, set }: Document): Promise<Ask> => {
    let now: PolicyTest | null = null;
    const upstream = await startUpstream(t, (req, res) => {
      const { reply = 500, replyHeaders = [], replyBytes } = now ?? {};
      res.writeHead(reply, [...replyHeaders, PASSED, String(req.headers['x-gateway-over'] ?? '')]);
      res.end('x'.repeat(replyBytes ?? 0));
    });
    const gateways: TestGateway[] = [];
    for (let i = 0; i < count; i++)
      gateways.push(
        await startTestGateway(t, {
          upstream,
          policies: text,
          env: { ...BEHIND_PROXY, ...env },
          ...(clock(at) === undefined ? {} : { clock: clock(at) as () => Millis }),
        }),
      );
    return async (step, i) => {
      now = step;
      const { port } = gateways[i % count] as TestGateway;
      const body = step.bodies[i % step.bodies.length];
      return seen(
        await send(port, step.target, { method: step.method, headers: headersOf(step, i, set), body }),
      );
    };
  };
}

/** The headers of a request, as the trusted proxy in front sends them. */
function headersOf(step: PolicyTest, i: number, { planHeader }: PolicySet): string[] {
  const body = step.bodies[i % step.bodies.length] ?? '';
  const headers = [...step.rawHeaders, 'X-Forwarded-For', step.from[i % step.from.length] ?? ''];
  const add = (name: string, value: string): void => {
    if (!headers.some((one, at) => at % 2 === 0 && one.toLowerCase() === name)) headers.push(name, value);
  };
  add('host', 'localhost');
  if (step.plan !== null && planHeader !== null) add(planHeader, step.plan);
  if (body !== '') {
    add('content-type', body.startsWith('{') ? 'application/json' : 'application/x-www-form-urlencoded');
    add('content-length', String(Buffer.byteLength(body)));
  }
  return headers;
}

function seen({ status, headers }: Answer): Seen {
  const over = headers[PASSED];
  const marked = typeof over === 'string' && over !== '' ? over.split(', ') : [];
  return { status, passes: over !== undefined, headers, marked };
}

/** Asks the decision listener as `forward_auth` does, which knows no bodies and no replies. */
export async function decide(t: Test, { text, at, set }: Document): Promise<Ask> {
  const port = await freePort();
  await startTestGateway(t, {
    upstream: 'http://127.0.0.1:9',
    policies: text,
    env: { ...BEHIND_PROXY, GATEWAY_DECISION_PORT: String(port) },
    clock: () => at,
  });
  return async (step, i) => {
    const own = ['x-forwarded-method', step.method, 'x-forwarded-uri', step.target];
    const headers = headersOf(step, i, set);
    const host = headers.findIndex((name, at) => at % 2 === 0 && name.toLowerCase() === 'host');
    if (host >= 0) own.push('x-forwarded-host', headers[host + 1] ?? '');
    const answer = await send(port, '/forward-auth', { headers: [...headers, ...own] });
    return { ...seen(answer), passes: answer.status === 200 };
  };
}
