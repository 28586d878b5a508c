/** The public table of HTTP/1.1 conformance: all cases, on both ways into the gateway, and the page about them. */
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import t, { type Test } from 'tap';
import { readPage } from '#test/docs/pages.ts';
import { createAuthority } from '#test/support/certificates.ts';
import { startTestGateway } from '#test/support/gateway.ts';
import { projectRoot } from '#test/support/process.ts';
import { secured } from '#test/support/tls-client.ts';
import { CASES, type Case, type Demand } from './case.ts';
import { Application, exchange, type Outcome } from './exchange.ts';

interface Way {
  readonly application: Application;
  open(): Promise<Duplex>;
}

const isRefused = ({ statuses, isKept, seen }: Outcome): boolean =>
  statuses.length === 1 && /^4|^50[15]$/.test(String(statuses[0])) && !isKept && seen.length === 0;
const isServed = ({ statuses, seen }: Outcome, { sent }: Case): boolean =>
  statuses.length === sent.length &&
  statuses.every((status) => status < 400) &&
  // The gateway itself answers OPTIONS *, which is about the server.
  (seen.length === sent.length || sent[0]?.startsWith('OPTIONS *') === true);
const isPassed = ({ statuses, seen }: Outcome, { sent }: Case): boolean =>
  statuses.length === sent.length && seen.length === sent.length;

const MEETS: Readonly<Record<Demand, (outcome: Outcome, one: Case) => boolean>> = {
  'MUST refuse': isRefused,
  grammar: isRefused,
  'SHOULD refuse': (outcome, one) => isRefused(outcome) || (one.why !== '' && isServed(outcome, one)),
  'MAY refuse': (outcome, one) => isRefused(outcome) || isServed(outcome, one),
  'MUST close': (outcome, one) => !outcome.isKept && (isRefused(outcome) || isServed(outcome, one)),
  'MUST accept': isServed,
  'SHOULD accept': (outcome, one) => isServed(outcome, one) || (one.why !== '' && isRefused(outcome)),
  'no switch': (outcome, one) => isPassed(outcome, one) && !outcome.statuses.includes(101),
  // The application may have seen the head, but never the end of the body.
  incomplete: ({ statuses, seen }) =>
    !seen.some((line) => line.includes('"')) && statuses.every((s) => s === 400),
  application: isPassed,
};

/** Checks each reply: RFC 9110 6.6.1, 8.6, 15.5.6, 9.3.2 and 15.2, and the form of the gateway's refusals. */
function checkReplies(t: Test, outcome: Outcome, { id, sent }: Case): void {
  const { text } = outcome;
  for (const [head, status] of text.matchAll(/HTTP\/1\.1 (\d{3}) [\s\S]*?\r\n\r\n/g)) {
    const values = (name: string): string[] =>
      [...head.matchAll(new RegExp(`^${name}: (.*)\r$`, 'gim'))].map(([, value = '']) => value);
    if (status === '100') continue;
    const [date = '', ...others] = values('date');
    t.ok(
      others.length === 0 && new Date(date).toUTCString() === date,
      `${id}: ${status} has one Date, "${date}"`,
    );
    if (status === '204') t.strictSame(values('content-length'), [], `${id}: 204 without Content-Length`);
    if (status === '405') t.equal(values('allow').length, 1, `${id}: 405 with Allow`);
  }
  if (isRefused(outcome) && sent[0]?.startsWith('HEAD') === false) {
    const [head = '', body = ''] = text.split('\r\n\r\n');
    t.match(head, /\r\nConnection: close(?:\r\n|$)/i, `${id}: Connection: close`);
    t.match(head, /\r\nAccess-Control-Allow-Origin: \*(?:\r\n|$)/i, `${id}: any page can read it`);
    t.match(JSON.parse(body), { message: String, details: {} }, `${id}: a problem in JSON`);
  }
  if (sent[0]?.startsWith('HEAD')) t.notMatch(text, /hello of \/(?!next)/, `${id}: no body`);
  if (/ HTTP\/1\.0\r\n/.test(sent[0] ?? '')) t.notMatch(text, /HTTP\/1\.1 1\d\d/, `${id}: no interim reply`);
}

async function run(t: Test, { application, open }: Way): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  let counted = 0;
  for (const one of CASES) {
    const outcome = await exchange(await open(), one.sent, application, one.demand === 'incomplete');
    const { statuses, isKept, seen } = outcome;
    const told = `${statuses.join(' ')}, ${isKept ? 'kept' : 'closed'}, seen: ${seen.join(' | ')}`;
    t.ok(MEETS[one.demand](outcome, one), `${one.id}: ${one.demand}; ${told}`);
    t.notMatch(seen.join(), /_| and /, `${one.id}: no trailer and no name with _ is forwarded`);
    checkReplies(t, outcome, one);
    counted += seen.length + (isKept ? 1 : 0);
    outcomes.push(outcome);
  }
  t.equal(application.total, counted, 'nothing reached the application later');
  return outcomes;
}

function answerOf({ statuses, isKept }: Outcome): string {
  return `${statuses.length === 0 ? 'no reply' : statuses.join(', ')}, ${isKept ? 'kept' : 'closed'}`;
}

/** Over TLS, node:http reads the request, and it refuses bytes beyond ASCII in a target. */
const REFUSED_OVER_TLS: ReadonlySet<string> = new Set(['MAL-NON-ASCII-URL', 'MAL-URL-OVERLONG-UTF8']);

const GROUPS: Readonly<Record<string, RegExp>> = {
  'What a server has to accept and refuse': /^(?:COMP|RFC)/,
  'Request smuggling': /^SMUG/,
  'Malformed input': /^MAL/,
  'Names of fields': /^NORM/,
  Cookies: /^COOK/,
  'Conditional requests': /^CAP/,
};

function tables(outcomes: readonly Outcome[]): string {
  const answers = new Map(CASES.map((one, i) => [one, answerOf(outcomes[i] as Outcome)]));
  return Object.entries(GROUPS)
    .map(([title, pattern]) => {
      const rows = CASES.filter(({ id }) => pattern.test(id)).map(
        (one) =>
          `| \`${one.id}\` | ${one.about} | ${one.rfc} | ${one.demand} | ${answers.get(one)}${one.why === '' ? '' : `: ${one.why}`} |`,
      );
      return `### ${title}\n\n| Case | Request | RFC | Asks | Floodgate |\n|---|---|---|---|---|\n${rows.join('\n')}\n`;
    })
    .join('\n');
}

const authority = createAuthority(t);
const { cert, key } = authority.issue('server', 'IP:127.0.0.1,DNS:localhost');

async function startWay(t: Test, env: Record<string, string>): Promise<Way> {
  const application = new Application();
  const { port } = await startTestGateway(t, { upstream: await application.start(t), env });
  const open = async (): Promise<Duplex> =>
    env.GATEWAY_TLS_CERT === undefined ? connect({ port, host: '127.0.0.1' }) : secured(port, authority.ca);
  return { application, open };
}

t.test('all cases, on both ways, with the same answers, which are on the page', async (t) => {
  t.equal(new Set(CASES.map(({ id }) => id)).size, 215, 'each case of the public table once');
  const [own, tls] = await Promise.all([
    startWay(t, { GATEWAY_OWN_PARSER: '1' }).then((way) => run(t, way)),
    startWay(t, { GATEWAY_TLS_CERT: cert, GATEWAY_TLS_KEY: key }).then((way) => run(t, way)),
  ]);
  const wantedOverTls = own.map((outcome, i) =>
    REFUSED_OVER_TLS.has(CASES[i]?.id ?? '') ? '400, closed' : answerOf(outcome),
  );
  t.strictSame(tls.map(answerOf), wantedOverTls, 'node:http behind TLS answers like our parser');
  const page = readPage('test/gateway/listen/conformance/conformance.md');
  const [before = ''] = page.text.split('### ');
  // Another test writes what follows.
  const wanted = before + tables(own) + page.text.slice(page.text.indexOf('\n## Replies\n'));
  // `UPDATE=1 npx node FILE` writes the tables.
  if (process.env.UPDATE === '1') writeFileSync(join(projectRoot, page.file), wanted);
  else
    t.equal(
      page.text,
      wanted,
      'run UPDATE=1 npx node test/gateway/listen/conformance/http-conformance.test.ts',
    );
});
