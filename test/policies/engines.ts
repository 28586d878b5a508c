/** Ways to ask for decisions: each takes the requests of one document of test/policies in turn. */

import { writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { Test } from 'tap';
import { identityOf } from '#gateway/identity/digest.ts';
import type { PolicyTest } from '#gateway/policy/policy-set.ts';
import { recordOf } from '#gateway/reply/own-reply.ts';
import { type Explanation, explain } from '#gateway/workbench/rehearsal/explain.ts';
import { Rehearsal } from '#gateway/workbench/rehearsal/rehearsal.ts';
import { applyingOf, priorityOf, replyTo } from '#gateway/workbench/rehearsal/rehearsed.ts';
import type { Clock } from '#shared/clock.ts';
import { type Answer, send } from '#test/gateway/proxy/exchange.ts';
import { BEHIND_PROXY, startTestGateway, startUpstream, type TestGateway } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';
import { type Document, digestOf, type Step } from './document.ts';

/** What one request got. */
export interface Seen {
  readonly status: number;
  /** Whether the application is asked. */
  readonly passes: boolean;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The reply's; null where none is written. */
  readonly body: string | null;
  /** Policies that mark the request. */
  readonly marked?: readonly string[];
  /** Policies that apply, and the priority: no reply tells them. */
  readonly policies?: readonly string[];
  readonly priority?: string | null;
  /** What `explain` says. */
  readonly explained?: Explanation;
}

export interface Engine {
  ask(step: Step, i: number): Promise<Seen>;
  /** Does what comes before the requests of a step. */
  prepare(step: Step): Promise<void>;
  /** null where nobody sees it. */
  readonly served: Served | null;
}

/** What can be seen of running gateways. */
export interface Served {
  readonly gateways: readonly TestGateway[];
  readonly application: Application;
}

/** Decides without a socket, as `npx floodgate check` does. */
export async function rehearse(_: Test, { set }: Document, clock: Clock): Promise<Engine> {
  const rehearsal = new Rehearsal(set, { clock });
  return {
    served: null,
    prepare: async () => undefined,
    async ask({ test, own, expect }, i) {
      const { method, target, from, plan } = test;
      const rawHeaders = [...test.rawHeaders, ...pairsOf(own.fields)];
      const request = {
        ...{ method, target, rawHeaders, body: test.bodies[i % test.bodies.length] },
        socket: { remoteAddress: from[i % from.length] },
        plan: plan ?? undefined,
      };
      if (test.isRegular) rehearsal.welcome(request);
      if (expect.explains !== undefined) {
        const explained = explain(set, rehearsal, request);
        const { status } = explained;
        return { status: status ?? test.reply, passes: status === null, headers: {}, body: null, explained };
      }
      const asked = rehearsal.ask(request);
      if (asked.kind === 'allow') rehearsal.answered(asked, test.reply, test.replyHeaders, test.replyBytes);
      else if (asked.kind === 'uncovered') rehearsal.learn(asked, test.reply);
      const { status, headers } = replyTo(asked, clock(), rehearsal.askingOf(request));
      return {
        status: status ?? test.reply,
        passes: status === null,
        headers: Object.fromEntries(
          Object.entries(recordOf(headers)).map(([name, value]) => [name.toLowerCase(), value]),
        ),
        body: null,
        marked: asked.kind === 'allow' ? asked.decision.marks.map(({ name }) => name) : [],
        policies: applyingOf(asked).map(({ name }) => name),
        priority: priorityOf(asked),
      };
    },
  };
}

/** Names each reply of the application. */
const PASSED = 'x-application';

/** An application that replies as the step says. */
class Application {
  now: PolicyTest | null = null;
  /** Whether it holds requests instead. */
  holds = false;
  readonly held: { readonly res: ServerResponse; readonly test: PolicyTest | null }[] = [];
  /** The last request: `target`, and its fields by their lower-case names. */
  arrived: Readonly<Record<string, unknown>> = {};

  static async start(t: Test): Promise<readonly [application: Application, origin: string]> {
    const application = new Application();
    const { origin } = await startUpstream(t, (req, res) => {
      application.arrived = { ...req.headers, target: req.url };
      res.setHeader(PASSED, String(req.headers['x-gateway-over'] ?? ''));
      if (application.holds) application.held.push({ res, test: application.now });
      else application.#reply(res, application.now);
    });
    t.teardown(() => application.release());
    return [application, origin];
  }

  #reply(res: ServerResponse, test: PolicyTest | null): void {
    const { reply = 200, replyHeaders = [], replyBytes } = test ?? {};
    res.writeHead(reply, [...replyHeaders, PASSED, String(res.getHeader(PASSED))]);
    res.end('x'.repeat(replyBytes ?? 0));
  }

  release(): void {
    for (const { res, test } of this.held.splice(0)) this.#reply(res, test);
  }
}

/** @returns asks gateways with these settings in turn, in front of an application that replies as the step says */
export function serve(count: number, env: Readonly<Record<string, string>>) {
  return async (t: Test, document: Document, clock: Clock | null): Promise<Engine> => {
    const [application, origin] = await Application.start(t);
    const { options, folder } = optionsOf(t, document, { ...env }, clock);
    const gateways: TestGateway[] = [];
    for (let i = 0; i < count; i++)
      gateways.push(await startTestGateway(t, { ...options, upstream: origin }));
    let asked = 0;
    return {
      served: { gateways, application },
      prepare: (step) => prepare(step, gateways, application, folder),
      async ask(step, i) {
        const { test, own } = step;
        application.now = test;
        application.holds = own.hold === true;
        const { port } = gateways[asked++ % count] as TestGateway;
        const body = test.bodies[i % test.bodies.length];
        return seen(
          await send(port, test.target, {
            method: test.method,
            headers: headersOf(step, i, document),
            body,
            ...(own.chunked === true ? { pieces: 5 } : {}),
          }),
        );
      },
    };
  };
}

/** Asks the decision listener, as `forward_auth` does unless a step says how. It knows no bodies and no replies. */
export async function decide(t: Test, document: Document, clock: Clock | null): Promise<Engine> {
  const port = await freePort();
  const own = { GATEWAY_DECISION_PORT: String(port) };
  const { options, folder } = optionsOf(t, document, own, clock);
  const [application, origin] = await Application.start(t);
  const gateway = await startTestGateway(t, { ...options, upstream: origin });
  return {
    served: { gateways: [gateway], application },
    prepare: (step) => prepare(step, [gateway], application, folder),
    async ask(step, i) {
      const { method, target, reply } = step.test;
      const { via = 'forward-auth' } = step.own;
      const headers = headersOf(step, i, document);
      const asExtAuthz = { method, headers };
      if (via === 'ext-authz') return decided(await send(port, `/ext-authz${target}`, asExtAuthz));
      const told = ['x-forwarded-method', method, 'x-forwarded-uri', target];
      if (via === 'replied') told.push('x-reply-status', String(reply));
      const host = headers.findIndex((name, at) => at % 2 === 0 && name.toLowerCase() === 'host');
      if (host >= 0) told.push('x-forwarded-host', headers[host + 1] ?? '');
      return decided(await send(port, `/${via}`, { headers: [...headers, ...told] }));
    },
  };
}

function decided(answer: Answer): Seen {
  const over = answer.headers['x-gateway-over'];
  const marked = over === undefined ? [] : String(over).split(', ');
  return { ...seen(answer), passes: answer.status === 200, marked };
}

function optionsOf(t: Test, document: Document, more: Record<string, string>, clock: Clock | null) {
  const { text, files, env } = document;
  const own = clock === null ? {} : { clock };
  const all = { ...BEHIND_PROXY, ...env, ...more };
  if (Object.keys(files).length === 0) return { options: { policies: text, env: all, ...own }, folder: '' };
  const folder = temporaryFolder(t);
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  writeFileSync(join(folder, 'policies.yaml'), text);
  return { options: { env: { ...all, GATEWAY_POLICIES: join(folder, 'policies.yaml') }, ...own }, folder };
}

async function prepare(
  { own }: Step,
  gateways: readonly TestGateway[],
  application: Application,
  folder: string,
): Promise<void> {
  if (own.release === true) application.release();
  const files = Object.entries(own.write ?? {});
  const told = new RegExp(own.refused ?? 'the edited policy file is in use');
  const tellsOf = ({ log }: TestGateway): number =>
    log.filter((line) => told.test(JSON.stringify(line))).length;
  const before = gateways.map(tellsOf);
  for (const [name, content] of files) writeFileSync(join(folder, name), content);
  if (files.length > 0)
    await until(() => gateways.every((gateway, i) => tellsOf(gateway) > (before[i] ?? 0)), String(told));
  const identity = (subject: string) => {
    const [name = '', value = ''] = subject.split(' ');
    return identityOf(digestOf(name, value));
  };
  const control = gateways[0]?.gateway.control;
  if (own.ban !== undefined) await control?.ban(identity(own.ban), 3_600_000, 'by an operator');
  if (own.unban !== undefined) await control?.unban(identity(own.unban));
}

function pairsOf(fields: readonly string[] = []): string[] {
  return fields.flatMap((field) => /^([^:]+): ?(.*)$/s.exec(field)?.slice(1) ?? []);
}

/** The headers of a request, as the trusted proxy in front sends them. */
function headersOf({ test, own }: Step, i: number, { set: { planHeader } }: Document): string[] {
  const body = test.bodies[i % test.bodies.length] ?? '';
  const chain = own.chain === undefined ? test.from[i % test.from.length] : own.chain;
  const headers = [...test.rawHeaders, ...pairsOf(own.fields)];
  if (chain !== null) headers.push('X-Forwarded-For', chain ?? '');
  const add = (name: string, value: string): void => {
    if (!headers.some((one, at) => at % 2 === 0 && one.toLowerCase() === name)) headers.push(name, value);
  };
  add('host', 'localhost');
  if (test.plan !== null && planHeader !== null) add(planHeader, test.plan);
  if (body !== '') {
    add('content-type', body.startsWith('{') ? 'application/json' : 'application/x-www-form-urlencoded');
    if (own.chunked !== true) add('content-length', String(Buffer.byteLength(body)));
  }
  return headers;
}

function seen({ status, headers, body }: Answer): Seen {
  const over = headers[PASSED];
  const marked = typeof over === 'string' && over !== '' ? over.split(', ') : [];
  return { status, passes: over !== undefined, headers, body: body.toString(), marked };
}
