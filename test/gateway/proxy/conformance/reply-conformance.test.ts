/** What becomes of replies that violate the grammar, on both ways into the gateway, and the page about it. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { readPage } from '#test/docs/pages.ts';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';
import { projectRoot } from '#test/support/process.ts';
import { REPLY_CASES, REPLY_GROUPS, type ReplyCase } from './reply-cases.ts';
import { type Received, receive, startApplication } from './reply-exchange.ts';

const FILE = 'test/gateway/proxy/conformance/reply-conformance.test.ts';
/** Every line obeys the grammar, in particular those that did not. */
const HEAD =
  /^HTTP\/1\.1 \d{3} [\t\x20-\x7e\x80-\xff]*(?:\r\n[!#$%&'*+.^_`|~0-9A-Za-z-]+: [\t\x20-\x7e\x80-\xff]*)*$/;

function check(t: Test, received: Received, { about, demand, sent }: ReplyCase): void {
  const { status, head, body, isWhole } = received;
  const told = `${about}: ${demand}; ${answerOf(received)}`;
  t.match(head, HEAD, `${about}: the client gets a valid head`);
  t.ok((head.match(/\r\nContent-Length:/gi)?.length ?? 0) <= 1, `${about}: one length`);
  if (demand === 'refuse') t.ok(status === 502 && isWhole, told);
  else if (demand === 'break') t.ok(status === 502 || !isWhole, told);
  else {
    t.ok(status === (sent.includes(' 403.') ? 403 : 200) && isWhole, told);
    t.equal(body, sent.includes('Content-Length: 6') ? 'ok\r\n\r\n' : 'ok', `${about}: the body`);
  }
}

function answerOf({ status, head, isWhole }: Received): string {
  // Whether a broken reply has begun when it breaks depends on the moment.
  if (!isWhole) return 'cut';
  const [, reason = '', fields = ''] = /^HTTP\/1\.1 \d{3} ([^\r]*)([\s\S]*)$/.exec(head) ?? [];
  const kept = [...fields.matchAll(/\r\n(X: .*)/g)].map(([, field]) => `, \`${field}\``);
  return status === 502 ? '502' : `${status}${reason === 'OK' ? '' : ` "${reason}"`}${kept.join('')}`;
}

async function run(t: Test, env: Record<string, string>): Promise<string[]> {
  const application = await startApplication(t);
  const { port } = await startTestGateway(t, { upstream: application, policies: policyFile(), env });
  const answers: string[] = [];
  for (const one of REPLY_CASES) {
    const received = await receive(port, one, application);
    check(t, received, one);
    const answer = one.demand === 'break' ? '502, or cut if it has begun' : answerOf(received);
    answers.push(`${answer} | ${received.isKept ? 'kept' : 'closed'}`);
  }
  return answers;
}

function tables(answers: readonly string[]): string {
  const of = new Map(REPLY_CASES.map((one, i) => [one, answers[i]]));
  return Object.entries(REPLY_GROUPS)
    .map(([title, group]) => {
      const rows = group.map((one) => `| ${one.about} | ${one.rfc} | ${of.get(one)} | ${one.nginx} |\n`);
      return `### ${title}\n\n| The application sends | RFC | The client gets | Connection | NGINX |\n|---|---|---|---|---|\n${rows.join('')}`;
    })
    .join('\n');
}

t.test('all cases, on both ways in, with the same answers, which are on the page', async (t) => {
  const own = await run(t, { GATEWAY_OWN_PARSER: '1' });
  t.strictSame(await run(t, { GATEWAY_OWN_PARSER: '0' }), own, 'node:http answers like our parser');
  const page = readPage('test/gateway/listen/conformance/conformance.md');
  const from = page.text.indexOf('### ', page.text.indexOf('\n## Replies\n'));
  const wanted = page.text.slice(0, from) + tables(own);
  // `UPDATE=1 npx node FILE` writes the tables.
  if (process.env.UPDATE === '1') writeFileSync(join(projectRoot, page.file), wanted);
  else t.equal(page.text, wanted, `run UPDATE=1 npx node ${FILE}`);
});
