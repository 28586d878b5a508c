/**
 * Finds the segments of a contact. Pure.
 *
 * Filters are stored as they were sent. What is no filter, or compares with a value that its operator does not know, matches
 * nobody, because a survey is shown to the members of its segment.
 */
import type { Timestamp } from '#api/db/schema.ts';
import { isRecord } from '#api/values/schemas.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Millis } from '#shared/clock.ts';
import { operators, spanBefore } from './operators.ts';

export type Device = 'phone' | 'desktop';

/** The facts about a contact that decide which segments it belongs to. */
export interface ContactProfile {
  readonly now: Millis;
  readonly userId: string;
  /** Attribute values by key. */
  readonly attributes: Readonly<Record<string, string>>;
  /** The device of this request. A contact may have several. */
  readonly device: Device;
  readonly displays: readonly SeenSurvey[];
  readonly responses: readonly AnsweredSurvey[];
}

export interface SeenSurvey {
  readonly surveyId: string;
  readonly createdAt: Timestamp;
}

export interface AnsweredSurvey extends SeenSurvey {
  readonly finished: boolean;
  /** Time of the last change. For a finished response this is the time when it was finished, unless it was changed later. */
  readonly updatedAt: Timestamp;
}

interface FilteredSegment {
  readonly id: string;
  readonly filters: unknown;
}

/** Segments may refer to each other. A longer chain of references is not decided, so that it needs no deep stack. */
const CHAIN_MAX = 500;
/** Before anything that is stored. */
const LONG_AGO: Millis = 0;

/** Whether the contact is in another segment; null if there is no such segment, or it depends on itself. */
type IsIn = (segmentId: unknown) => boolean | null;

/** @returns the ids of the contact's segments, in the order of the segments */
export function segmentsOf(segments: readonly FilteredSegment[], profile: ContactProfile): readonly string[] {
  const filtersOf = new Map<unknown, unknown>(segments.map(({ id, filters }) => [id, filters]));
  const known = new Map<unknown, boolean | null>();
  const asked = new Set<unknown>();
  const isIn: IsIn = (id) => {
    const decided = known.get(id);
    if (decided !== undefined) return decided;
    if (!filtersOf.has(id)) return null;
    if (asked.has(id) || asked.size >= CHAIN_MAX) {
      // Nothing in this chain can be decided.
      for (const one of asked) known.set(one, null);
      return null;
    }
    asked.add(id);
    const result = holds(filtersOf.get(id), profile, isIn);
    asked.delete(id);
    if (!known.has(id)) known.set(id, result);
    return known.get(id) ?? null;
  };
  return segments.flatMap(({ id }) => (isIn(id) === true ? [id] : []));
}

/**
 * Without filters, everybody matches. `and` binds before `or`, so a or b and c is a or (b and c).
 *
 * @param nodes `[{connector: null | and | or, resource: filter | nodes}]`
 */
function holds(nodes: unknown, profile: ContactProfile, isIn: IsIn): boolean {
  if (!Array.isArray(nodes)) return false;
  let isMatch = true;
  for (const [i, node] of nodes.entries()) {
    const { connector, resource } = isRecord(node) ? node : {};
    if (i > 0 && connector === 'or') {
      if (isMatch) return true;
      isMatch = true;
    }
    isMatch &&= Array.isArray(resource) ? holds(resource, profile, isIn) : matches(resource, profile, isIn);
  }
  return isMatch;
}

/** @param filter `{root, value, qualifier: {operator}}` */
function matches(filter: unknown, profile: ContactProfile, isIn: IsIn): boolean {
  if (!isRecord(filter) || !isRecord(filter.root) || !isRecord(filter.qualifier)) return false;
  const { root, value } = filter;
  const { operator } = filter.qualifier;
  const test = (given: string | undefined, expected: unknown = value): boolean =>
    operators.get(operator)?.(given, expected, profile.now) ?? false;
  switch (root.type) {
    case 'attribute': {
      // Segments from before attribute keys have the older name of the field.
      const key = String(root.contactAttributeKey ?? root.attributeClassName);
      return test(Object.hasOwn(profile.attributes, key) ? profile.attributes[key] : undefined);
    }
    case 'person':
      return test(profile.userId);
    case 'device':
      return test(profile.device, value ?? root.deviceType);
    case 'segment': {
      // If that segment cannot be decided, both operators are false.
      const isMember = isIn(value ?? root.segmentId);
      return isMember === true ? operator === 'userIsIn' : isMember === false && operator === 'userIsNotIn';
    }
    case 'surveyInteraction':
      return interacted(operator, value, profile);
    default:
      return false;
  }
}

/** @param value `{surveyScope: any | specific, surveyIds, within: a span or null}` */
function interacted(operator: unknown, value: unknown, profile: ContactProfile): boolean {
  if (!isRecord(value)) return false;
  const { surveyScope, surveyIds, within = null } = value;
  const from = within === null ? LONG_AGO : spanBefore(profile.now, within);
  if (from === null || (surveyScope !== 'any' && !Array.isArray(surveyIds))) return false;
  const earliest = toTimestamp(from);
  const isMeant = (surveyId: string, at: Timestamp): boolean =>
    at >= earliest && (surveyScope === 'any' || (Array.isArray(surveyIds) && surveyIds.includes(surveyId)));
  const { displays, responses } = profile;
  const hasSeen = () => displays.some(({ surveyId, createdAt }) => isMeant(surveyId, createdAt));
  const hasStarted = () => responses.some(({ surveyId, createdAt }) => isMeant(surveyId, createdAt));
  const hasCompleted = () =>
    responses.some(({ surveyId, updatedAt, finished }) => finished && isMeant(surveyId, updatedAt));
  switch (operator) {
    case 'haveSeen':
      return hasSeen();
    case 'haveNotSeen':
      return !hasSeen();
    case 'haveStartedRespondingTo':
      return hasStarted();
    case 'haveCompleted':
      return hasCompleted();
    case 'haveNotCompleted':
      return !hasCompleted();
    default:
      return false;
  }
}
