/** Fills the entry of the access log. A refusal adds itself, because only then its id is known. */
import type { Observer } from '#gateway/request/events.ts';

export const accessLog: Observer = {
  located(request) {
    if (request.entry !== null) request.entry.request = request;
  },
  charged({ entry, caller }) {
    if (entry !== null) entry.address = caller.identity();
  },
  replied({ entry }, { status, tookMs }) {
    if (entry === null) return;
    entry.upstreamMs = tookMs;
    if (status === 101) entry.status = status;
  },
};
