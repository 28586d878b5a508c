/** Trace headers (W3C Trace Context) pass through the gateway, and the access log has the id of the trace. */
import { join } from 'node:path';
import t from 'tap';
import { traceIdIn } from '#gateway/observe/trace-id.ts';
import { casesUnder } from '#test/support/arrow-cases.ts';
import { startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { jsonLines } from '#test/support/json.ts';
import { sendRaw } from '#test/support/raw.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const VALID = `00-${TRACE}-00f067aa0ba902b7-01`;

t.test('one valid traceparent names the trace', async (t) => {
  const file = join(import.meta.dirname, 'trace-id.md');
  for (const [values = '', trace] of casesUnder(file, 'Values of traceparent, and the trace')) {
    const fields = values === 'none' ? [] : values.split(' | ').flatMap((value) => ['TraceParent', value]);
    t.equal(traceIdIn(['Host', 'a', ...fields]) ?? 'none', trace, values);
  }
});

t.test('the application gets the headers unchanged, and each line has the trace', async (t) => {
  const seen: string[] = [];
  const upstream = await startUpstream(t, (req, res) => {
    seen.push(req.rawHeaders.filter((_, i, all) => /^trace/i.test(all[i - (i % 2)] ?? '')).join(' '));
    res.end();
  });
  const file = join(temporaryFolder(t), 'access.log');
  const { port } = await startTestGateway(t, { upstream, env: { GATEWAY_ACCESS_LOG: file } });
  const fields = `Host: a\r\ntraceparent: ${VALID}\r\nTraceState: a=1\r\nTraceState: b=2\r\nConnection: close\r\n\r\n`;
  for (const line of ['GET /free', 'OPTIONS /a%00b', 'OPTIONS *'])
    await sendRaw(port, `${line} HTTP/1.1\r\n${fields}`).ended();
  await until(() => jsonLines(file).length === 3);
  t.strictSame(seen, [`traceparent ${VALID} TraceState a=1 TraceState b=2`]);
  t.match(jsonLines(file), [
    { decision: 'uncovered', trace: TRACE },
    { decision: 'malformed', trace: TRACE },
    { decision: 'uncovered', trace: TRACE },
  ]);
});
