/** Steps of charges that are not plain. */
import { storeScript } from '#gateway/store/connection.ts';
import type { Millis } from '#shared/clock.ts';
import { Charge, type Part, proofKey, reservedOf } from './charge.ts';
import { type PendingCheck, UnreadableReplyError } from './check.ts';
import { type GivenBack, generalCall, giveBackCall, readGeneralReply } from './general-check.ts';
import { GIVE_BACK_GENERAL, SPEND_GENERAL } from './general-script.ts';
import { ClosedLevel, type Level, OwnHistoryLevel } from './level.ts';
import type { StepDialect } from './steps.ts';

/** KEYS a proof marker. */
const PROOF_TTL = storeScript(`return redis.call('PTTL', KEYS[1])`);

export const GENERAL_STEPS: StepDialect = {
  async look(store, credentials) {
    const markers = new Map<string, Millis>();
    const used = new Set<string>();
    const levels = new Map<string, Level>();
    const lookAt = async (counters: readonly Part[]): Promise<void> => {
      // Asked for by nobody, counters are only looked at.
      const asked = [{ charge: new Charge(counters, false), listeners: [] }];
      const { keys, args } = generalCall(asked);
      const [answer] = readGeneralReply(await store.run(SPEND_GENERAL, keys, args), asked).answers;
      for (const [i, { key }] of counters.entries()) {
        const level = answer?.spent.levels?.[i] ?? null;
        if (level === null) continue;
        levels.set(key, level);
        if (level.used > 0) used.add(key);
      }
    };
    const proofs = new Set(credentials.map(({ proof }) => proofKey(proof)));
    const slots = Map.groupBy(credentials, ({ key }) => store.slotOf(key));
    await Promise.all([
      ...[...proofs].map(async (key) => markers.set(key, Number(await store.run(PROOF_TTL, [key], [])))),
      ...[...slots.values()].map(lookAt),
    ]);
    return { markers, used, levels };
  },

  async ask(store, step, listeners) {
    const strangers = new Set(step.filter(({ isStranger }) => isStranger).map(({ part }) => part));
    const asked: PendingCheck[] = [
      {
        charge: new Charge(
          step.map(({ part }) => part),
          false,
        ),
        listeners: [...listeners],
      },
    ];
    const { keys, args } = generalCall(asked, [], (part) =>
      strangers.has(part) ? -reservedOf(part.capacity) : 0,
    );
    const reply = readGeneralReply(await store.run(SPEND_GENERAL, keys, args), asked);
    const [answer] = reply.answers;
    if (answer === undefined) throw new UnreadableReplyError('the store sent a reply of another length');
    const { admitted, levels } = answer.spent;
    const met = step.map(({ own }, i) => {
      const level = levels?.[i] ?? null;
      if (level === null) throw new UnreadableReplyError('the store skipped a part that it has to charge');
      const isClosed = level instanceof ClosedLevel;
      return {
        used: level.used,
        charged: isClosed ? level.charged : level.used,
        capacity: level.capacity,
        level: own === null || isClosed ? level : new OwnHistoryLevel(level, reservedOf(level.capacity), own),
        held: answer.held?.[i] ?? null,
      };
    });
    return { now: reply.now, admitted, met };
  },

  giveBack(store, list) {
    const { keys, args } = giveBackCall(
      list.map(({ part, times, chargedAt }): GivenBack => ({ part, units: times * part.cost, chargedAt })),
    );
    return store.run(GIVE_BACK_GENERAL, keys, args);
  },

  timesOf: () => [],
};
