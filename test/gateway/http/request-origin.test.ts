/** Tests how the gateway determines the origin of requests. */
import t from 'tap';
import { RequestOrigin } from '#gateway/http/request-origin.ts';
import { parseTrustedProxies } from '#shared/trusted-proxies.ts';

const trust = parseTrustedProxies('10.0.0.0/8');
const plain = { trusted: false, isIntroduced: false, scheme: 'http' };

t.test('the origin is the peer, or the client in its PROXY header', async (t) => {
  t.match(new RequestOrigin({ remoteAddress: '192.0.2.1' }, trust), { ...plain, peer: '192.0.2.1' });
  t.match(new RequestOrigin({ remoteAddress: '::ffff:10.0.0.1', encrypted: true }, trust), {
    peer: '10.0.0.1',
    trusted: true,
    isIntroduced: false,
    scheme: 'https',
  });
  const introduced = { ...plain, isIntroduced: true };
  t.match(new RequestOrigin({ remoteAddress: '10.0.0.1' }, trust, '192.0.2.1'), {
    ...introduced,
    peer: '192.0.2.1',
  });
  t.match(new RequestOrigin({ remoteAddress: '10.0.0.1' }, trust, '10.0.0.2'), {
    peer: '10.0.0.2',
    trusted: true,
  });
  t.match(new RequestOrigin({}, trust), { ...plain, peer: '' }, 'a closed socket has no peer');
});
