/** Fills the entry of the access log. A refusal adds itself, because only then its id is known. */
import type { Observer } from '#gateway/request/events.ts';

export const accessLog: Observer = {
  located(request) {
    if (request.entry !== null) request.entry.request = request;
  },
  charged({ entry, caller }) {
    if (entry !== null) entry.address = caller.identity();
  },
  spent({ entry, storeMs }) {
    if (entry !== null) entry.storeMs = storeMs;
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
