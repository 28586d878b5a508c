/** What has to be done now and then, in every process: surveys whose date has come, and forgetting what is old. */
import type { FastifyBaseLogger } from 'fastify';
import type { Context } from '#api/context.ts';
import { forgetOldEvents, forgetSurplusDeliveries, webhooksAfter } from '#api/events/retention.ts';
import { closeDueSurveys, publishDueSurveys } from '#api/resources/surveys/schedule.ts';
import { findWorkspace } from '#api/resources/workspaces/store.ts';
import { toTimestamp } from '#api/timestamps.ts';
import type { Millis } from '#shared/clock.ts';

/** How late a survey may start or end. */
const SCHEDULE_EVERY: Millis = 15_000;
const FORGET_EVERY: Millis = 10 * 60 * 1000;

export interface Upkeep {
  /** Waits for what is under way. */
  stop(): Promise<void>;
}

type Parts = Pick<Context, 'db' | 'clock' | 'states'>;

export function startUpkeep(context: Parts, log: FastifyBaseLogger): Upkeep {
  const running = new Set<Promise<void>>();
  let isStopping = false;
  const timers = [
    every(SCHEDULE_EVERY, () => moveSurveys(context)),
    every(FORGET_EVERY, () => forget(context, () => isStopping)),
  ];

  /** Also at once: dates may have come while no process was there. */
  function every(ms: Millis, work: () => Promise<void>): NodeJS.Timeout {
    let isRunning = false;
    const run = (): void => {
      if (isRunning) return;
      isRunning = true;
      const done = work()
        .catch((error: unknown) => log.error({ err: error }, 'the upkeep failed; it tries again'))
        .finally(() => {
          isRunning = false;
          running.delete(done);
        });
      running.add(done);
    };
    run();
    return setInterval(run, ms);
  }

  return {
    async stop() {
      isStopping = true;
      for (const timer of timers) clearInterval(timer);
      await Promise.all(running);
    },
  };
}

/** Starts and ends surveys whose date has come, and has their workspaces' states built anew. */
export async function moveSurveys({ db, clock, states }: Parts): Promise<void> {
  const now = toTimestamp(clock());
  const moved = [...(await closeDueSurveys(db, now)), ...(await publishDueSurveys(db, now))];
  for (const workspaceId of new Set(moved.map((survey) => survey.workspaceId))) {
    const workspace = await findWorkspace(db, workspaceId);
    if (workspace !== null) states.purge({ workspaceId, environmentId: workspace.environmentId });
  }
}

export async function forget({ db, clock }: Parts, isStopping: () => boolean): Promise<void> {
  while (!isStopping() && (await forgetOldEvents(db, clock())));
  let last = '';
  let webhookIds = await webhooksAfter(db, last);
  while (webhookIds.length > 0) {
    for (const webhookId of webhookIds) {
      while (!isStopping() && (await forgetSurplusDeliveries(db, webhookId)));
      if (isStopping()) return;
      last = webhookId;
    }
    webhookIds = await webhooksAfter(db, last);
  }
}
