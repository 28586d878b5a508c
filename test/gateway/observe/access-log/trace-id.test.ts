/** Trace headers (W3C Trace Context) pass through the gateway, and the access log has the id of the trace. */
import { join } from 'node:path';
import t from 'tap';
import { startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { jsonLines } from '#test/support/json.ts';
import { sendRaw } from '#test/support/raw.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';
const VALID = `00-${TRACE}-${PARENT}-01`;

/** Trace headers of a request, and the trace in its line. */
const CASES: readonly (readonly [headers: readonly string[], trace: string | null])[] = [
  [[], null],
  [[`traceparent: ${VALID}`], TRACE],
  [[`traceparent: ${VALID}`, 'tracestate: a=1,b=2', 'tracestate: c=3'], TRACE],
  [[`TraceParent: 00-${TRACE}-${PARENT}-00`, 'TraceState: a=1'], TRACE],
  // A later version may have more fields.
  [[`traceparent: cc-${TRACE}-${PARENT}-01`], TRACE],
  [[`traceparent: cc-${TRACE}-${PARENT}-01-what-the-future-holds`], TRACE],
  [[`traceparent: cc-${TRACE}-${PARENT}-01.more`], null],
  [[`traceparent: ${VALID}-more`], null],
  [[`traceparent: ${VALID}-`], null],
  [[`traceparent: ff-${TRACE}-${PARENT}-01`], null],
  [[`traceparent: 00-${'0'.repeat(32)}-${PARENT}-01`], null],
  [[`traceparent: 00-${TRACE}-${'0'.repeat(16)}-01`], null],
  [[`traceparent: 00-${TRACE.toUpperCase()}-${PARENT}-01`], null],
  [[`traceparent: 00-${TRACE.slice(1)}-${PARENT}-01`], null],
  [[`traceparent: 00-${TRACE}-${PARENT}-0`], null],
  [[`traceparent: 0-${TRACE}-${PARENT}-01`], null],
  [[`traceparent: ${TRACE}`], null],
  [['traceparent:'], null],
  [['traceparent: secret', 'tracestate: a=1'], null],
  // Of several, none can be trusted.
  [[`traceparent: ${VALID}`, `traceparent: ${VALID}`, 'tracestate: a=1'], null],
  [[`traceparent: ${VALID}`, 'traceparent: nonsense'], null],
  [['tracestate: a=1'], null],
];

for (const ownParser of ['1', '0'])
  t.test(`with GATEWAY_OWN_PARSER=${ownParser}`, async (t) => {
    const seen: string[][] = [];
    const upstream = await startUpstream(t, (req, res) => {
      const { rawHeaders } = req;
      const traced = rawHeaders.flatMap((name, i) =>
        i % 2 === 0 && /^trace/i.test(name) ? [`${name}: ${rawHeaders[i + 1]}`] : [],
      );
      seen.push(traced);
      res.end();
    });
    const file = join(temporaryFolder(t), 'access.log');
    const { port } = await startTestGateway(t, {
      upstream,
      env: { GATEWAY_ACCESS_LOG: file, GATEWAY_OWN_PARSER: ownParser },
    });
    for (const [headers] of CASES) {
      const fields = ['Host: a', ...headers, 'Connection: close'];
      const reply = await sendRaw(port, `GET /free HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`).ended();
      t.match(reply, /^HTTP\/1\.1 200 /);
    }
    await until(() => jsonLines(file).length === CASES.length);
    t.strictSame(
      seen.map((headers) => headers.map((header) => header.trimEnd())),
      CASES.map(([headers]) => headers),
      'the application gets the headers unchanged',
    );
    t.strictSame(
      jsonLines(file).map(({ trace }) => trace),
      CASES.map(([, trace]) => trace),
      'the log has the trace of each valid traceparent',
    );
  });

t.test('requests that the gateway answers itself have their trace too', async (t) => {
  const file = join(temporaryFolder(t), 'access.log');
  const { port } = await startTestGateway(t, { env: { GATEWAY_ACCESS_LOG: file } });
  for (const target of ['/a%00b', '*'])
    await sendRaw(
      port,
      `OPTIONS ${target} HTTP/1.1\r\nHost: a\r\ntraceparent: ${VALID}\r\nConnection: close\r\n\r\n`,
    ).ended();
  await until(() => jsonLines(file).length === 2);
  t.match(jsonLines(file), [
    { decision: 'malformed', trace: TRACE },
    { decision: 'uncovered', trace: TRACE },
  ]);
});
