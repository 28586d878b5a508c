/**
 * The private segment of a survey, which has the survey's id as its title. SDKs show a survey only to members of its
 * segment, so a survey for everybody needs one too.
 */
import type { Context } from '#api/context.ts';
import type { Database } from '#api/db/schema.ts';
import { newRow } from '#api/resources/workspaces/table.ts';
import { findPrivateSegment, type Segment, segments } from './store.ts';

interface OfSurvey {
  readonly id: string;
  readonly workspaceId: string;
}

/**
 * Finds the segment of a survey, or creates it, with everybody in it.
 *
 * @throws the driver's unique violation if a shared segment has the title
 */
export async function privateSegment(
  trx: Database,
  context: Pick<Context, 'clock' | 'random'>,
  { id, workspaceId }: OfSurvey,
): Promise<Segment> {
  const known = await findPrivateSegment(trx, workspaceId, id);
  if (known !== null) return known;
  const made: Segment = {
    ...newRow(context, workspaceId),
    ...{ title: id, description: null, isPrivate: true, filters: [] },
  };
  await segments.insert(trx, made);
  return made;
}
