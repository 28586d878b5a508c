/** A client that leaves halfway through its body does not count as a failure of the server. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { Writable } from 'node:stream';
import { pino } from 'pino';
import t from 'tap';
import { startApi } from '#test/support/api-app.ts';
import { until } from '#test/support/until.ts';

interface Line {
  readonly level: number;
  readonly msg: string;
}

t.test('logs at a low level that the client left', async (t) => {
  const lines: Line[] = [];
  const destination = new Writable({
    write(chunk, _encoding, done) {
      lines.push(JSON.parse(String(chunk)) as Line);
      done();
    },
  });
  const api = await startApi(t, { log: pino({ level: 'info' }, destination) });
  const port = await api.listen();

  for (const body of ['{"name":', '']) {
    lines.length = 0;
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    socket.write(
      `POST /api/v1/client/ws1/responses HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n${body}`,
    );
    await once(api.app.server, 'request');
    socket.destroy();
    await until(() => lines.length > 0);
    t.match(lines, [{ level: 30, msg: 'the client left before its body was complete' }]);
    t.equal(lines.length, 1);
  }
});
