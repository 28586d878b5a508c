/**
 * Finds the contacts of a segment. Filters are functions and not SQL, so every contact of the workspace is looked at,
 * a portion at a time.
 */
import { countRows } from '#api/db/count.ts';
import type { Database } from '#api/db/schema.ts';
import { badRequest } from '#api/errors.ts';
import type { ListPage } from '#api/http/pagination.ts';
import { Work } from '#api/http/turn.ts';
import { attributesOf, type Contact } from '#api/resources/contacts/store.ts';
import type { AnsweredSurvey, SeenSurvey } from '#api/resources/segments/contact-profile.ts';
import { compileSegments, segmentsOf } from '#api/resources/segments/evaluate.ts';
import { withReferred } from '#api/resources/segments/interactions.ts';
import type { Segment } from '#api/resources/segments/store.ts';
import type { Millis } from '#shared/clock.ts';

/** Maximum number of contacts in a workspace whose segments have filters. Checking this number takes seconds. */
const CONTACTS_MAX = 100_000;
const PORTION = 100;
/** Displays and responses that are read for a portion, newest first. */
const ACTIONS_MAX = 50_000;

interface Members {
  readonly ids: readonly string[];
  /** Number of members on all pages together. */
  readonly total: number;
}

/**
 * @returns one page of the ids, oldest contact first, ties by id
 * @throws ApiError bad_request if there are too many contacts to check
 */
export async function membersOf(
  db: Database,
  segment: Segment,
  page: ListPage,
  now: Millis,
): Promise<Members> {
  const { id, workspaceId, filters } = segment;
  const contacts = db.selectFrom('contacts').where('workspaceId', '=', workspaceId);
  const count = await countRows(contacts);
  if (filters.length === 0) {
    const rows = await contacts
      .select('id')
      .orderBy('createdAt')
      .orderBy('id')
      .limit(page.limit)
      .offset(page.skip)
      .execute();
    return { ids: rows.map((row) => row.id), total: count };
  }
  if (count > CONTACTS_MAX) {
    const problem = `The workspace has more than ${CONTACTS_MAX} contacts; ask for the link of one contact at a time`;
    throw badRequest(problem, { segmentId: problem });
  }
  const needed = (await withReferred(db, [segment])).filter((one) => one.workspaceId === workspaceId);
  const compiled = compileSegments(needed);
  const needsActions = needed.some(({ interactions }) => interactions.length > 0);
  const ids: string[] = [];
  let total = 0;
  const work = await Work.begin();
  for await (const portion of portionsOf(db, workspaceId)) {
    const contactIds = portion.map((contact) => contact.id);
    const attributes = await attributesOf(db, contactIds);
    const { displays, responses } = needsActions ? await actionsOf(db, contactIds) : noActions;
    for (const contact of portion) {
      const profile = {
        now,
        userId: contact.userId,
        attributes: attributes.get(contact.id) ?? {},
        device: null,
        displays: displays.get(contact.id) ?? [],
        responses: responses.get(contact.id) ?? [],
      };
      if (!segmentsOf(compiled, profile).includes(id)) continue;
      if (total >= page.skip && ids.length < page.limit) ids.push(contact.id);
      total += 1;
    }
    await work.done(PORTION_WORK);
  }
  return { ids, total };
}

/** Counts as much as parsing a quarter of a megabyte, so that other requests run after a few portions. */
const PORTION_WORK = 262_144;

async function* portionsOf(db: Database, workspaceId: string): AsyncGenerator<readonly Contact[]> {
  let last: Contact | undefined;
  for (;;) {
    const after = last;
    let query = db.selectFrom('contacts').selectAll().where('workspaceId', '=', workspaceId);
    if (after !== undefined) {
      query = query.where(({ eb, and, or }) =>
        or([
          eb('createdAt', '>', after.createdAt),
          and([eb('createdAt', '=', after.createdAt), eb('id', '>', after.id)]),
        ]),
      );
    }
    const portion: Contact[] = await query.orderBy('createdAt').orderBy('id').limit(PORTION).execute();
    if (portion.length > 0) yield portion;
    last = portion.at(-1);
    if (portion.length < PORTION) return;
  }
}

interface Actions {
  readonly displays: ReadonlyMap<string | null, readonly SeenSurvey[]>;
  readonly responses: ReadonlyMap<string | null, readonly AnsweredSurvey[]>;
}

const noActions: Actions = { displays: new Map(), responses: new Map() };

async function actionsOf(db: Database, contactIds: readonly string[]): Promise<Actions> {
  const displays = await db
    .selectFrom('displays')
    .select(['contactId', 'surveyId', 'createdAt'])
    .where('contactId', 'in', contactIds)
    .orderBy('createdAt', 'desc')
    .orderBy('id', 'desc')
    .limit(ACTIONS_MAX)
    .execute();
  const responses = await db
    .selectFrom('responses')
    .select(['contactId', 'surveyId', 'createdAt', 'updatedAt', 'finished'])
    .where('contactId', 'in', contactIds)
    .orderBy('createdAt', 'desc')
    .orderBy('id', 'desc')
    .limit(ACTIONS_MAX)
    .execute();
  return {
    displays: Map.groupBy(displays, ({ contactId }) => contactId),
    responses: Map.groupBy(
      responses.map((row) => ({ ...row, finished: row.finished === 1 })),
      ({ contactId }) => contactId,
    ),
  };
}
