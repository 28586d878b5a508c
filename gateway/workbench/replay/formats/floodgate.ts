/**
 * The gateway's own access log (docs/operating.md). It has digests, so addresses and keys are not needed.
 *
 * Lines of the gateway have one shape, so their fields are read at fixed places, which is several times as fast as
 * JSON.parse. Other lines, such as those that another program has rewritten, are parsed.
 */
import type { Millis } from '#shared/clock.ts';
import { documentIn, durationIn, type Fields, fieldsOf, numberOf } from './fields.ts';
import type { LineReader, LoggedRequest, LoggedVerdict } from './logged-request.ts';

const VERDICTS: readonly string[] = ['allow', 'deny', 'banned', 'uncovered', 'malformed', 'unavailable'];
const DIGEST = /^[\w-]{22}$/;
const NONE: readonly string[] = [];
const DIGEST_LENGTH = 22;
const TIME_LENGTH = 24;

export function floodgateReader(): LineReader {
  // Lines are parsed some time after their times were read, so each step remembers its own minute.
  const looked = new IsoTime();
  const time = new IsoTime();
  return {
    format: 'floodgate',
    time: (text, start) =>
      text.startsWith(TIME, start) ? looked.read(text, start + TIME.length) : Number.NaN,
    read: (text, start, end, at = Number.NaN) =>
      readUsual(text, start, end, time, at) ?? readAny(text, start, end),
  };
}

/** Parses ISO 8601 as Date writes it. Consecutive lines are close in time, so usually only the seconds are parsed. */
class IsoTime {
  #minute = '';
  #minuteAt: Millis = Number.NaN;

  /** @returns NaN if there is no valid time */
  read(text: string, at: number): Millis {
    if (this.#minute === '' || !text.startsWith(this.#minute, at)) {
      this.#minute = text.slice(at, at + 17);
      this.#minuteAt = Date.parse(`${this.#minute}00.000Z`);
    }
    if (text.charCodeAt(at + 23) !== 90) return Number.NaN;
    return this.#minuteAt + digits(text, at + 17, 2) * 1000 + digits(text, at + 20, 3);
  }
}

/** @returns NaN if there are other characters */
function digits(text: string, at: number, count: number): number {
  let value = 0;
  for (let i = at; i < at + count; i++) {
    const digit = text.charCodeAt(i) - 48;
    if (!(digit >= 0 && digit <= 9)) return Number.NaN;
    value = value * 10 + digit;
  }
  return value;
}

const TIME = '{"time":"';
const METHOD = '","method":"';
const PATH = '","path":"';
const STATUS = '","status":';
const DECISION = ',"decision":"';
/** Text in the line of a request that was not refused. */
const NO_ID = '","id":null,"policies":[';
const ID = '","id":"';
const POLICIES = '","policies":[';
const POLICY = '],"policy":';
const IDENTITIES = ',"identities":{';
const ADDRESS = '},"address":';
const ALL_PROVEN = ',"unproven":[],"proves":';
const UNPROVEN = ',"unproven":["';
const PROVES = '"],"proves":';
const PLAN = ',"plan":"';
const DURATION = '"durationMs":';
/** The duration is at most this far from the end. After it come a number and `,"cut":false}`. */
const DURATION_BEFORE_END_MAX = 60;

/** @returns null if the line has another shape */
function readUsual(
  text: string,
  start: number,
  end: number,
  time: IsoTime,
  known: Millis,
): LoggedRequest | null {
  if (!text.startsWith(TIME, start)) return null;
  const timeAt = start + TIME.length;
  const methodKey = timeAt + TIME_LENGTH;
  if (!text.startsWith(METHOD, methodKey)) return null;
  const methodAt = methodKey + METHOD.length;
  const methodEnd = text.indexOf('"', methodAt);
  if (!text.startsWith(PATH, methodEnd)) return null;
  const pathAt = methodEnd + PATH.length;
  const pathEnd = text.indexOf('"', pathAt);
  const target = text.slice(pathAt, pathEnd);
  // JSON.parse must handle escaped characters.
  if (!text.startsWith(STATUS, pathEnd) || target.includes('\\')) return null;
  const statusAt = pathEnd + STATUS.length;
  const isAnswered = text.charCodeAt(statusAt) !== 110;
  const status = isAnswered ? digits(text, statusAt, 3) : 0;
  const decisionKey = statusAt + (isAnswered ? 3 : 4);
  if (Number.isNaN(status) || !text.startsWith(DECISION, decisionKey)) return null;
  const decisionAt = decisionKey + DECISION.length;
  const decision = verdictAt(text, decisionAt);
  const policiesAt = decision === null ? -1 : listAt(text, decisionAt + decision.length);
  if (decision === null || policiesAt < 0) return null;
  const policiesEnd = text.indexOf(']', policiesAt);
  if (!text.startsWith(POLICY, policiesEnd)) return null;
  const identitiesKey = text.indexOf(',', policiesEnd + POLICY.length);
  if (!text.startsWith(IDENTITIES, identitiesKey)) return null;
  const identitiesAt = identitiesKey + IDENTITIES.length;
  const identitiesEnd = text.indexOf('}', identitiesAt);
  if (!text.startsWith(ADDRESS, identitiesEnd)) return null;
  const addressAt = identitiesEnd + ADDRESS.length;
  const hasAddress = text.charCodeAt(addressAt) === 34;
  const unprovenKey = addressAt + (hasAddress ? DIGEST_LENGTH + 2 : 4);
  let unproven = NONE;
  let provesAt = unprovenKey + ALL_PROVEN.length;
  if (!text.startsWith(ALL_PROVEN, unprovenKey)) {
    const unprovenAt = unprovenKey + UNPROVEN.length;
    const unprovenEnd = text.indexOf('"]', unprovenAt);
    if (!text.startsWith(UNPROVEN, unprovenKey) || !text.startsWith(PROVES, unprovenEnd)) return null;
    unproven = text.slice(unprovenAt, unprovenEnd).split('","');
    provesAt = unprovenEnd + PROVES.length;
  }
  const at = Number.isNaN(known) ? time.read(text, timeAt) : known;
  const identities = pairsIn(text, identitiesAt, identitiesEnd);
  if (Number.isNaN(at) || provesAt >= end || identities === null) return null;
  return {
    at,
    method: methodIn(text, methodAt, methodEnd),
    target,
    status,
    durationMs: durationAt(text, end),
    sender: null,
    digests: {
      decision,
      identities,
      address: hasAddress ? text.slice(addressAt + 1, addressAt + 1 + DIGEST_LENGTH) : null,
      unproven,
      proves: text.charCodeAt(provesAt) === 116,
      plan: planAt(text, provesAt),
      policies: text.slice(policiesAt, policiesEnd),
    },
  };
}

/** Reads the duration, which is at the end of the line. */
function durationAt(text: string, end: number): Millis | null {
  const at = text.lastIndexOf(DURATION, end);
  if (at < end - DURATION_BEFORE_END_MAX) return null;
  const from = at + DURATION.length;
  const duration = Number.parseFloat(text.slice(from, end));
  return duration >= 0 ? duration : null;
}

/** Logs of earlier versions have no plan. @param provesAt start of the value before it */
function planAt(text: string, provesAt: number): string | null {
  const at = provesAt + (text.charCodeAt(provesAt) === 116 ? 4 : 5);
  if (!text.startsWith(PLAN, at)) return null;
  const from = at + PLAN.length;
  return text.slice(from, text.indexOf('"', from));
}

/** Returns a known string for common methods, which makes later lookups cheap. */
function methodIn(text: string, start: number, end: number): string {
  if (end - start === 3 && text.startsWith('GET', start)) return 'GET';
  if (end - start === 4 && text.startsWith('POST', start)) return 'POST';
  return text.slice(start, end);
}

function verdictAt(text: string, at: number): LoggedVerdict | null {
  const first = text.charCodeAt(at);
  for (const verdict of VERDICTS)
    if (verdict.charCodeAt(0) === first && text.startsWith(verdict, at)) return verdict as LoggedVerdict;
  return null;
}

/** @param at position after the decision @returns start of the policy names; -1 if the line has another shape */
function listAt(text: string, at: number): number {
  if (text.startsWith(NO_ID, at)) return at + NO_ID.length;
  if (!text.startsWith(ID, at)) return -1;
  const idEnd = text.indexOf('"', at + ID.length);
  return text.startsWith(POLICIES, idEnd) ? idEnd + POLICIES.length : -1;
}

/** Parses `"name":"DIGEST","name":"DIGEST"`. @returns null for anything else */
function pairsIn(text: string, start: number, end: number): readonly string[] | null {
  if (start === end) return NONE;
  const pairs: string[] = [];
  for (let at = start; at < end; ) {
    const nameEnd = text.indexOf('"', at + 1);
    const digestAt = nameEnd + 3;
    if (text.charCodeAt(digestAt + DIGEST_LENGTH) !== 34) return null;
    pairs.push(text.slice(at + 1, nameEnd), text.slice(digestAt, digestAt + DIGEST_LENGTH));
    at = digestAt + DIGEST_LENGTH + 2;
  }
  return pairs;
}

function readAny(text: string, start: number, end: number): LoggedRequest | null {
  const fields = documentIn(text, start, end);
  if (fields === null) return null;
  const at = Date.parse(stringIn(fields, 'time'));
  const decision = stringIn(fields, 'decision');
  const identities = fieldsOf(fields.identities);
  if (Number.isNaN(at) || !VERDICTS.includes(decision) || identities === null) return null;
  const address = stringIn(fields, 'address');
  return {
    at,
    method: stringIn(fields, 'method') || null,
    target: stringIn(fields, 'path'),
    status: numberOf(fields, 'status'),
    durationMs: durationIn(fields, 'durationMs', 1),
    sender: null,
    digests: {
      decision: decision as LoggedVerdict,
      identities: digestsIn(identities),
      address: DIGEST.test(address) ? address : null,
      unproven: textsIn(fields.unproven),
      proves: fields.proves === true,
      plan: stringIn(fields, 'plan') || null,
      policies: textsIn(fields.policies)
        .map((name) => JSON.stringify(name))
        .join(','),
    },
  };
}

function digestsIn(identities: Fields): string[] {
  return Object.entries(identities).flatMap(([name, digest]) =>
    typeof digest === 'string' && DIGEST.test(digest) ? [name, digest] : [],
  );
}

function textsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === 'string') : NONE;
}

/** Reads a text; '' if it is missing. Unlike in other logs, `-` has no special meaning. */
function stringIn(fields: Fields, name: string): string {
  const value = fields[name];
  return typeof value === 'string' ? value : '';
}
