/**
 * The five types to read first. A request meets them in this order:
 *
 *     policies.yaml -> Policy[]                       policy/file/load.ts
 *     request + Policy[] -> Bucket[], as one Charge   request/reading/read.ts, limiter/charge.ts
 *     Charge -> Spent                                 limiter/limiter.ts, in Redis or in memory
 *     Spent -> Decision                               limiter/decision.ts
 *
 * For example, a file has the policy `login`: 10 requests a minute for each client address. A client at 192.0.2.1 posts
 * to /login. The request is charged to one bucket, that of `login` and the digest of 192.0.2.1. If the client used 4
 * units before, `Spent` says `admitted: 1` and a state with `used: 4`. The decision is `allow`, with one verdict in
 * which 5 units remain.
 *
 * This file is a page for readers. Code imports the types from their own files.
 */

/**
 * A `Bucket` is a policy's counter for one identity, with the cost of this request in units. Identities are digests:
 * nothing behind this point knows an address or a key.
 *
 * A `Charge` has all buckets of one request. They are charged together or not at all, so a denied request is charged
 * nowhere. Requests of one event-loop tick with the same charge are decided together, as a batch.
 */
export type { Bucket, Charge } from './limiter/charge.ts';
/**
 * The answer for one request of the batch: `allow` with a verdict for each policy, or `deny` with the exhausted
 * policies. The reply's limit headers, the access log and `explain` are made from it.
 */
export type { Decision } from './limiter/decision.ts';

/**
 * The result of a charge for its whole batch: how many requests are admitted, and the state of each bucket before the
 * first of them. A denial is a result, not an error. `isLocal` says that the store was not available.
 */
export type { Spent } from './limiter/limiter.ts';
/**
 * One limit of the policy file, checked and with all defaults: the route that it covers, the identifier that says who is
 * counted, the limit, the window, and the name of the algorithm. A reload makes new policies. Counters are kept by name.
 */
export type { Policy } from './policy/policy.ts';
