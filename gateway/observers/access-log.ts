/** Fills the entry of the access log. A refusal adds itself, because only then its id is known. */
import type { Observer } from '#gateway/request/events.ts';

export const accessLog: Observer = {
  located: ({ entry, match }) => entry?.matched(match.path, match.cover),
  charged({ entry, charged, identified, caller }) {
    entry?.charged(charged, identified, caller.identity());
  },
  spent({ entry, storeMs }, spent) {
    if (entry === null) return;
    entry.spent(spent);
    entry.storeMs = storeMs;
  },
  passed({ entry, allowed }) {
    if (entry === null) return;
    entry.decision = allowed === null ? 'uncovered' : 'allow';
    entry.policy = allowed?.verdicts[0]?.policy.name ?? null;
    entry.marked = allowed?.marks.map(({ name }) => name) ?? [];
  },
  replied({ entry }, { status, tookMs }) {
    if (entry === null) return;
    entry.upstreamMs = tookMs;
    if (status === 101) entry.status = status;
  },
};
