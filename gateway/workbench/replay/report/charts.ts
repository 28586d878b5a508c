/** Charts of the report, as SVG in the page. */

import { count, counted } from '#gateway/workbench/number-text.ts';
import type { Span } from '#gateway/workbench/replay/timeline.ts';
import type { Millis } from '#shared/clock.ts';
import { type Html, html } from './html.ts';

const HEIGHT = 100;

/** Draws allowed and denied requests over time, stacked. The text next to it tells the times and the highest bar. */
export function timelineChart(spans: readonly Span[], spanMs: Millis): Html {
  const first = spans[0];
  const last = spans.at(-1);
  if (first === undefined || last === undefined)
    return html`<p class="soft">No policy covers any request.</p>`;
  const highest = Math.max(...spans.map(({ allowed, denied }) => allowed + denied), 1);
  const bars = spans.flatMap(({ allowed, denied }, i) => [
    bar('allowed', i, 0, allowed / highest),
    bar('denied', i, allowed / highest, denied / highest),
  ]);
  return html`<figure>
<p class="soft">Requests in ${duration(spanMs)}, at most ${count(highest)}: <span class="key allowed">allowed</span><span class="key denied">denied</span></p>
<svg class="bars" viewBox="0 0 ${spans.length} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="Allowed and denied requests over time">${bars}</svg>
<div class="axis"><span>${timeText(first.at)}</span><span>${timeText(last.at + spanMs)}</span></div>
</figure>`;
}

function bar(kind: 'allowed' | 'denied', at: number, from: number, share: number): Html {
  if (share === 0) return html``;
  // A minimum height keeps a small bar visible.
  const height = Math.max(share * HEIGHT, 0.75);
  const y = Math.max(0, HEIGHT - from * HEIGHT - height);
  return html`<rect class="${kind}" x="${at + 0.05}" y="${y.toFixed(2)}" width="0.9" height="${height.toFixed(2)}"/>`;
}

/** Draws the share of denied requests among those that a policy counted. */
export function shareBar(allowed: number, denied: number): Html {
  const share = denied / Math.max(1, allowed + denied);
  return html`<svg class="share" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect width="100" height="10" fill="var(--line)"/><rect width="${(share * 100).toFixed(1)}" height="10" fill="var(--denied)"/></svg>`;
}

function timeText(at: Millis): string {
  return new Date(at).toISOString().slice(0, 19).replace('T', ' ');
}

function duration(ms: Millis): string {
  const seconds = ms / 1000;
  if (seconds % 86_400 === 0) return plural(seconds / 86_400, 'day');
  if (seconds % 3600 === 0) return plural(seconds / 3600, 'hour');
  return seconds % 60 === 0 ? plural(seconds / 60, 'minute') : plural(seconds, 'second');
}

function plural(value: number, unit: string): string {
  return value === 1 ? `one ${unit}` : counted(value, unit);
}
