/** Tests the totals of the bounds, and the share of one client in all of them. */
import t from 'tap';
import { BOUND_NAMES, type BoundName } from '#gateway/bounds/bound-names.ts';
import { readConfig } from '#gateway/config.ts';

const sharesOf = (env: Record<string, string>): Record<string, number> => {
  const { bounds } = readConfig(env).config;
  return Object.fromEntries(BOUND_NAMES.map((name: BoundName) => [name, bounds[name].perClient]));
};

t.test('every bound has a share for one client by default', async (t) => {
  t.strictSame(sharesOf({}), {
    connections: 512,
    upstream_connections: 64,
    waiting: 256,
    uploads: 32,
    streams: 64,
    upgrades: 64,
    pipelined: 2048,
    unread_replies: 64,
  });
});

t.test('a default share follows its total, and is at least one', async (t) => {
  t.match(sharesOf({ GATEWAY_CONNECTIONS: '1600', GATEWAY_WAITING: '3' }), { connections: 100, waiting: 1 });
});

t.test('GATEWAY_CLIENT_SHARE is the share of every total', async (t) => {
  const env = { GATEWAY_CONNECTIONS: '1000', GATEWAY_STREAMS: '7' };
  t.match(sharesOf({ ...env, GATEWAY_CLIENT_SHARE: '0.5' }), { connections: 500, uploads: 64, streams: 3 });
  t.match(sharesOf({ ...env, GATEWAY_CLIENT_SHARE: '1' }), { connections: 1000, uploads: 128, streams: 7 });
  for (const value of ['0', '1.1', '50%', 'half', '-1']) {
    t.throws(
      () => sharesOf({ GATEWAY_CLIENT_SHARE: value }),
      /GATEWAY_CLIENT_SHARE: .* number from 0\.001 to 1, such as 0\.25/,
      value,
    );
  }
});

t.test('GATEWAY_UPGRADES lists protocols, and may have the total among them', async (t) => {
  const read = (value: string) => {
    const { upgrades, bounds } = readConfig({ GATEWAY_UPGRADES: value }).config;
    return [upgrades, bounds.upgrades.total];
  };
  t.strictSame(read(''), [['websocket'], 1024]);
  t.strictSame(read('500'), [['websocket'], 500]);
  t.strictSame(read('websocket,tcp,SPDY/3.1'), [['websocket', 'tcp', 'spdy/3.1'], 1024]);
  t.strictSame(read(' SPDY/3.1 , 20,'), [['spdy/3.1'], 20]);
  for (const name of ['h2c', 'H2C', 'h2', 'HTTP/2.0', 'http/1.1', 'HTTP', 'TLS/1.0', 'tls', 'h2c-14', 'h3'])
    for (const value of [name, `websocket, ${name}`, `${name},tcp`])
      t.throws(
        () => read(value),
        new RegExp(`GATEWAY_UPGRADES: "${name}" would carry requests past the limits; leave it out`),
      );
  for (const value of ['web socket', '*', 'a/b/c', 'tcp;q=1', 'tcp/'])
    t.throws(
      () => read(value),
      /GATEWAY_UPGRADES: ".*" is not a protocol, such as websocket or SPDY\/3\.1/,
      value,
    );
  for (const value of ['0', '1,2', '1000001'])
    t.throws(() => read(value), /GATEWAY_UPGRADES: .*one whole number from 1 to 1000000/, value);
});
