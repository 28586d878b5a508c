/** NGINX reads the cases of test/gateway/listen/conformance/conformance.md as its last column says. */
import t from 'tap';
import { REPLY_CASES, type ReplyCase } from '#test/gateway/proxy/conformance/reply-cases.ts';
import { type Received, receive, startApplication } from '#test/gateway/proxy/conformance/reply-exchange.ts';
import { runProgram } from '#test/support/neighbour.ts';
import { freePort } from '#test/support/ports.ts';
import { nginxCommand, startProxyProcess } from '#test/support/proxy-process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

/** Otherwise it would wait for its own timeout. */
const closes = ({ closes, nginx }: ReplyCase): boolean =>
  closes || nginx === 'waits' || nginx === 'as HTTP/0.9';

const isRead = ({ status, isWhole, body }: Received): boolean =>
  [200, 403].includes(status) && isWhole && body.trimEnd() === 'ok';

t.test('each case', async (t) => {
  const { stderr: version } = await runProgram(['nginx', '-v']);
  t.match(version, /nginx\/1\.22\./, 'the column is about this version; look at it again for another one');
  const application = await startApplication(t, closes);
  const folder = temporaryFolder(t);
  const port = await freePort();
  // Its upstreams keep connections, as those of the gateway do.
  const sites = `upstream application { server 127.0.0.1:${application.port}; keepalive 4; }
    server { listen 127.0.0.1:${port}; location / {
      proxy_pass http://application; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_read_timeout 1h;
    } }`;
  const { errors } = await startProxyProcess(t, nginxCommand(folder, sites), port, folder);
  for (const one of REPLY_CASES) {
    const received = await receive(port, one, application);
    const { text, status } = received;
    const told = `${one.about}: ${one.nginx}; ${JSON.stringify(text)}`;
    if (one.nginx === 'as HTTP/0.9')
      t.ok(!text.startsWith('HTTP/') && text.endsWith(one.sent.slice(-2)), told);
    else if (one.nginx === 'reads') t.ok(isRead(received), told);
    else if (one.nginx === 'refuses') t.ok(status === 502 || !received.isWhole, told);
    // By now the application has closed the connection.
    else t.notOk(received.isKept, told);
  }
  t.match(errors(), /upstream sent/, 'it says why it refuses');
});
