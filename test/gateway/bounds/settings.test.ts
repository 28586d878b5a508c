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

t.test('the share of a single bound is refused with what to set instead', async (t) => {
  for (const name of BOUND_NAMES) {
    const variable = `GATEWAY_${name.toUpperCase()}_PER_CLIENT`;
    t.throws(
      () => readConfig({ [variable]: '9' }),
      new RegExp(`${variable}: this variable was removed; set GATEWAY_CLIENT_SHARE`),
    );
  }
});
