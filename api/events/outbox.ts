/**
 * Events: what happened to responses, on its way to webhooks (SPEC.md §6; contract webhooks-and-events.md).
 *
 * - An *event* is written here, in the transaction of the change it tells of: either both are there or neither.
 * - Fan-out (fan-out.ts) turns it into one *delivery* per webhook that wants it, with the body that all attempts share.
 * - A worker *leases* due deliveries (lease.ts), makes an *attempt* at each (deliver.ts) and *settles* it (settle.ts):
 *   delivered, due again later (backoff.ts), or *parked* until somebody asks for it again (redeliver.ts).
 * - A lease that is not settled, because the process died, runs out; then the delivery is due again. So a delivery
 *   arrives at least once, and its id tells a receiver whether it has seen it.
 * - What is settled is kept for a while to be looked at (retention.ts).
 *
 * Whoever changes a response calls `recordEvents` inside the transaction and `context.outbox.notify()` after it. Should
 * the process end between the two, the next poll of any process finds the event.
 */
import type { Kysely } from 'kysely';
import type { Database, EventType } from '#api/db/schema.ts';
import { newId, type Random } from '#api/ids.ts';
import type { Response } from '#api/resources/responses/store.ts';
import type { Survey } from '#api/resources/surveys/store.ts';
import { toTimestamp } from '#api/timestamps.ts';
import type { Clock } from '#shared/clock.ts';

/** The survey as the payload shows it. */
export interface SurveySnapshot {
  readonly title: string;
  readonly type: string;
  readonly status: string;
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** What a later change to the response or its survey must not alter any more. */
export interface Snapshot {
  readonly response: Response;
  readonly survey: SurveySnapshot;
}

/**
 * Writes the events of one change (contract §1). Call it in the change's transaction, after the change.
 *
 * Where no webhook of the workspace and no follow-up could take notice, nothing is written.
 */
export async function recordEvents(
  trx: Kysely<Database>,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
  change: {
    readonly kind: 'responseCreated' | 'responseUpdated';
    readonly response: Response;
    readonly survey: Survey;
    /** The change ended the survey. */
    readonly isSurveyCompleted: boolean;
  },
): Promise<void> {
  const { kind, response, survey, isSurveyCompleted } = change;
  const hasFollowUps = response.finished && survey.content.followUps.length > 0;
  if (!hasFollowUps && !(await hasWebhooks(trx, survey.workspaceId))) return;

  const now = toTimestamp(clock());
  const snapshot: Snapshot = {
    response,
    survey: {
      title: survey.content.name,
      type: survey.content.type,
      status: isSurveyCompleted ? 'completed' : survey.content.status,
      createdAt: survey.createdAt,
      updatedAt: isSurveyCompleted ? now : survey.updatedAt,
    },
  };
  const types: readonly EventType[] = response.finished ? [kind, 'responseFinished'] : [kind];
  const text = JSON.stringify(snapshot);
  await trx
    .insertInto('events')
    .values(
      types.map((type) => ({
        id: newId(random),
        createdAt: now,
        workspaceId: survey.workspaceId,
        surveyId: survey.id,
        responseId: response.id,
        type,
        snapshot: text,
        payload: null,
        fannedOutAt: null,
      })),
    )
    .execute();
}

async function hasWebhooks(db: Kysely<Database>, workspaceId: string): Promise<boolean> {
  const row = await db
    .selectFrom('webhooks')
    .select('id')
    .where('workspaceId', '=', workspaceId)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}
