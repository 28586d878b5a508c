/**
 * The private segment of a survey, which has the survey's id as its title. SDKs show a survey only to members of its
 * segment, so a survey for everybody needs one too.
 */
import type { Context } from '#api/context.ts';
import type { Database } from '#api/db/schema.ts';
import { newRow } from '#api/resources/workspaces/table.ts';
import { checkFilters, referencesIn } from './references.ts';
import { findPrivateSegment, type Segment, segments } from './store.ts';

interface OfSurvey {
  readonly id: string;
  readonly workspaceId: string;
}

/**
 * Finds or creates the segment of a survey.
 *
 * @param filters conditions of its members; null leaves them unchanged, and a new segment has everybody
 * @throws ApiError invalid_fields under `filters`; the driver's unique violation if a shared segment has the title
 */
export async function privateSegment(
  trx: Database,
  context: Pick<Context, 'clock' | 'random'>,
  survey: OfSurvey,
  filters: readonly unknown[] | null,
): Promise<Segment> {
  const known = await findPrivateSegment(trx, survey.workspaceId, survey.id);
  if (known !== null && filters === null) return known;
  const fresh = newRow(context, survey.workspaceId);
  const segment: Segment = {
    ...(known ?? { ...fresh, title: survey.id, description: null, isPrivate: true }),
    filters: filters ?? [],
    updatedAt: fresh.updatedAt,
  };
  await checkFilters(trx, segment, referencesIn(segment.filters));
  if (known === null) await segments.insert(trx, segment);
  else await segments.update(trx, segment);
  return segment;
}
