/** The size of header sections: of requests and of replies, in each way in. */
import t from 'tap';
import { startRawUpstream } from '#test/gateway/proxy/exchange.ts';
import { type Owner, policyFile, startTestGateway } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';

const LARGEST = { GATEWAY_HEADER_BYTES: '65536' };
const policies = policyFile();

/** Answers with a field of the size that the path names, and with a body that says how large the request's field was. */
async function startMirror(owner: Owner): Promise<string> {
  const { origin } = await startRawUpstream(owner, (socket, text) => {
    if (!text.endsWith('\r\n\r\n')) return;
    const [, size = '0'] = /^GET \/(\d+) /.exec(text) ?? [];
    const body = `got ${/\r\nx: (x*)\r\n/i.exec(text)?.[1]?.length}.`;
    socket.end(
      `HTTP/1.1 200 OK\r\nY: ${'y'.repeat(Number(size))}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
  });
  return origin;
}

for (const [name, GATEWAY_OWN_PARSER] of [
  ['our parser', '1'],
  ['node:http', '0'],
] as const) {
  const start = async (owner: Owner, more: Readonly<Record<string, string>> = {}) => {
    const upstream = await startMirror(owner);
    const { port } = await startTestGateway(owner, {
      upstream,
      policies,
      env: { GATEWAY_OWN_PARSER, ...more },
    });
    return (requestBytes: number, replyBytes = 0): Promise<string> =>
      sendRaw(
        port,
        `GET /${replyBytes} HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(requestBytes)}\r\nConnection: close\r\n\r\n`,
      ).ended();
  };

  t.test(`${name}: 16 KiB by default`, async (t) => {
    const ask = await start(t);
    t.match(await ask(16_000), /^HTTP\/1\.1 200 OK\r\n.*got 16000\.$/s);
    t.match(await ask(17_000), /^HTTP\/1\.1 431 .*larger than 16 KiB; GATEWAY_HEADER_BYTES can allow/s);
    t.match(await ask(1, 16_000), /^HTTP\/1\.1 200 OK\r\n/);
    t.match(await ask(1, 17_000), /^HTTP\/1\.1 502 .*larger than 16 KiB; GATEWAY_HEADER_BYTES can allow/s);
  });

  t.test(`${name}: 64 KiB by the setting`, async (t) => {
    const ask = await start(t, LARGEST);
    t.match(await ask(64_000), /^HTTP\/1\.1 200 OK\r\n.*got 64000\.$/s);
    t.match(await ask(66_000), /^HTTP\/1\.1 431 .*larger than 64 KiB;/s);
    const reply = await ask(64_000, 64_000);
    t.match(reply, /^HTTP\/1\.1 200 OK\r\n.*got 64000\.$/s);
    t.ok(reply.includes('y'.repeat(64_000)));
    t.match(await ask(1, 66_000), /^HTTP\/1\.1 502 .*larger than 64 KiB;/s);
  });

  t.test(`${name}: less by the setting`, async (t) => {
    const ask = await start(t, { GATEWAY_HEADER_BYTES: '5000' });
    t.match(await ask(4800), /^HTTP\/1\.1 200 OK\r\n/);
    t.match(await ask(5100), /^HTTP\/1\.1 431 .*larger than 5000 bytes;/s);
    t.match(await ask(1, 5100), /^HTTP\/1\.1 502 .*larger than 5000 bytes;/s);
  });
}
