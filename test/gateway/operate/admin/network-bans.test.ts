/** Bans of networks that lie in each other. What commands say of bans stands in test/gateway/cli/sessions/gateway.md. */
import t from 'tap';
import { Bans } from '#gateway/bans/bans.ts';

t.test('of two networks, the larger one holds when the ban of the smaller one has ended', async (t) => {
  const bans = new Bans();
  const ban = (endsAt: number) => ({ endsAt, reason: '', policy: null });
  bans.set('10.0.0.0/8', ban(1000));
  bans.set('10.1.0.0/16', ban(500));
  const endAt = (now: number, address = [10, 1, 2, 3]) => bans.onAddress(address, now)?.endsAt;
  t.equal(endAt(0), 500);
  t.equal(endAt(0, [10, 2, 0, 1]), 1000);
  t.equal(endAt(600), 1000);
  t.equal(endAt(1000), undefined);
  t.equal(bans.size, 0);
  t.equal(bans.onAddress(null, 0), null);
  t.equal(endAt(0, [...new Array<number>(15).fill(0), 1]), undefined);
});
