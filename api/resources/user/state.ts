/**
 * The state of a user for SDKs: the segments, and the surveys that were seen and answered. It takes four queries for any
 * number of segments.
 */
import type { Database } from '#api/db/schema.ts';
import type { Attributes, Contact } from '#api/resources/contacts/store.ts';
import { readUserAgent } from '#api/resources/responses/user-agent.ts';
import {
  type AnsweredSurvey,
  type Device,
  type SeenSurvey,
  segmentsOf,
} from '#api/resources/segments/evaluate.ts';
import { openSurveys, segments } from '#api/resources/segments/store.ts';
import type { Millis } from '#shared/clock.ts';

/** Number of newest displays of a contact that are read. SDKs and segment filters need no older ones. */
const DISPLAYS_MAX = 1_000;
const RESPONSES_MAX = 1_000;

export async function readUserState(
  db: Database,
  user: {
    readonly contact: Contact;
    readonly userId: string;
    readonly attributes: Attributes;
    readonly device: Device;
  },
  now: Millis,
) {
  const { contact, userId, attributes, device } = user;
  const displays = await listDisplaysOfContact(db, contact.id, DISPLAYS_MAX);
  const responses = await listResponsesOfContact(db, contact.id, RESPONSES_MAX);
  const { workspaceId } = contact;
  const stored = await segments.listAll(db, workspaceId);
  const open = await openSurveys(db, workspaceId);
  const profile = { now, userId, attributes, device, displays, responses };
  const { language } = attributes;
  return {
    contactId: contact.id,
    userId,
    segments: [...segmentsOf(stored, profile), ...open],
    displays,
    responses: responses.map(({ surveyId }) => surveyId),
    lastDisplayAt: displays[0]?.createdAt ?? null,
    ...(language === undefined || language === '' ? {} : { language }),
  };
}

/** Lists displays, newest first, ties by id. */
function listDisplaysOfContact(
  db: Database,
  contactId: string,
  limit: number,
): Promise<readonly SeenSurvey[]> {
  return db
    .selectFrom('displays')
    .select(['surveyId', 'createdAt'])
    .where('contactId', '=', contactId)
    .orderBy('createdAt', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute();
}

/** Lists responses, newest first, ties by id. */
async function listResponsesOfContact(
  db: Database,
  contactId: string,
  limit: number,
): Promise<readonly AnsweredSurvey[]> {
  const rows = await db
    .selectFrom('responses')
    .select(['surveyId', 'createdAt', 'updatedAt', 'finished'])
    .where('contactId', '=', contactId)
    .orderBy('createdAt', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute();
  return rows.map((row) => ({ ...row, finished: row.finished === 1 }));
}

/** Mobile SDKs send the name of their system's HTTP library instead of a browser. */
const mobileLibraries = /\b(okhttp|Dalvik|CFNetwork|Darwin|Expo|ReactNative)\b/i;

/** @param userAgent the header; a tablet counts as a phone, because people hold and touch it like one */
export function deviceOf(userAgent: string): Device {
  const { device } = readUserAgent(userAgent);
  return device !== 'desktop' || mobileLibraries.test(userAgent) ? 'phone' : 'desktop';
}
