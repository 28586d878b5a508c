/** Every order of requests, replies and faults, within larger bounds than the quick suite's. */
import t from 'tap';
import { checkAll, NOTHING } from '#test/support/limiter-model/check-all.ts';

t.setTimeout(0);

const settings = [
  {
    gateways: 2,
    limit: 2,
    bounds: { ...NOTHING, requests: 3, connectionsLost: 1, lateReplies: 1, windowChanges: 1, finishes: 1 },
  },
  { gateways: 2, limit: 2, bounds: { ...NOTHING, requests: 4, storeLost: 1 } },
  { gateways: 2, limit: 2, bounds: { ...NOTHING, requests: 3, storeLost: 1, gatewaysKilled: 1 } },
  { gateways: 2, limit: 2, bounds: { ...NOTHING, requests: 3, storeLost: 1, windowChanges: 1 } },
  { gateways: 2, limit: 2, bounds: { ...NOTHING, requests: 3, errors: 1, lateReplies: 1, windowChanges: 1 } },
  { gateways: 2, limit: 2, bounds: { ...NOTHING, requests: 2, storeLost: 1, connectionsLost: 1 } },
  { gateways: 2, limit: 2, bounds: { ...NOTHING, requests: 4, errors: 2 } },
  { gateways: 2, limit: 2, bounds: { ...NOTHING, requests: 3, storeLost: 1, storeEmptied: 1 } },
  { gateways: 2, limit: 3, bounds: { ...NOTHING, requests: 3, connectionsLost: 2, lateReplies: 1 } },
  { gateways: 3, limit: 2, bounds: { ...NOTHING, requests: 2, storeLost: 1 } },
  { gateways: 3, limit: 3, bounds: { ...NOTHING, requests: 5 } },
];
await checkAll(t, settings, true);
