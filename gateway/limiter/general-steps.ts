/** Steps of charges that are not plain. */
import { Charge } from './charge.ts';
import { type PendingCheck, UnreadableReplyError } from './check.ts';
import { type GivenBack, generalCall, giveBackCall, readGeneralReply } from './general-check.ts';
import { GIVE_BACK_GENERAL, SPEND_GENERAL } from './general-script.ts';
import { LEASES_PER_SCRIPT_MAX, leaseCall, RELEASE } from './lease-scripts.ts';
import { type Lease, memberOf } from './leases.ts';
import type { StepDialect } from './steps.ts';

export const GENERAL_STEPS: StepDialect = {
  async ask(store, step, { listeners, leases }) {
    const asked: PendingCheck[] = [
      {
        charge: new Charge(
          step.map(({ part }) => part),
          false,
        ),
        listeners: [...listeners],
        leases,
      },
    ];
    const { keys, args } = generalCall(asked);
    const reply = readGeneralReply(await store.run(SPEND_GENERAL, keys, args), asked);
    const [answer] = reply.answers;
    if (answer === undefined) throw new UnreadableReplyError('the store sent a reply of another length');
    const { admitted, levels } = answer.spent;
    const met = step.map((_, i) => {
      const level = levels?.[i] ?? null;
      if (level === null) throw new UnreadableReplyError('the store skipped a part that it has to charge');
      return {
        used: level.used,
        capacity: level.capacity,
        level,
        held: answer.held?.[i] ?? null,
      };
    });
    return { now: reply.now, admitted, met };
  },

  async giveBack(store, list, leases) {
    const counted: GivenBack[] = [];
    const held: Lease[] = [];
    for (const { part, times, from, chargedAt } of list) {
      if (part.policy.algorithm !== 'concurrency')
        counted.push({ part, units: times * part.cost, chargedAt });
      else if (leases !== null)
        for (let i = 0; i < times; i++) held.push({ key: part.key, member: memberOf(leases, from + i) });
    }
    const calls: Promise<unknown>[] = [];
    if (counted.length > 0) {
      const { keys, args } = giveBackCall(counted);
      calls.push(store.run(GIVE_BACK_GENERAL, keys, args));
    }
    for (let at = 0; at < held.length; at += LEASES_PER_SCRIPT_MAX) {
      const { keys, args } = leaseCall(held.slice(at, at + LEASES_PER_SCRIPT_MAX));
      calls.push(store.run(RELEASE, keys, args));
    }
    await Promise.all(calls);
  },

  timesOf: () => [],
};
