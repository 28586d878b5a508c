/** Every order of requests, replies and faults, within small bounds: no window admits more than docs/policies.md says. */
import { checkAll, NOTHING } from '#test/support/limiter-model/check-all.ts';

await checkAll([
  { gateways: 2, limit: 2, bounds: { ...NOTHING, requests: 4, windowChanges: 1 } },
  { gateways: 2, limit: 2, bounds: { ...NOTHING, requests: 3, storeLost: 1 } },
  { gateways: 2, limit: 2, bounds: { ...NOTHING, requests: 3, silences: 1, lateReplies: 1 } },
  { gateways: 2, limit: 2, bounds: { ...NOTHING, requests: 3, connectionsLost: 1, lateReplies: 1 } },
  { gateways: 2, limit: 2, bounds: { ...NOTHING, requests: 4, storeEmptied: 1 } },
  { gateways: 2, limit: 2, bounds: { ...NOTHING, requests: 3, gatewaysKilled: 1 } },
  { gateways: 3, limit: 3, bounds: { ...NOTHING, requests: 4 } },
]);
