/** The result of a replay as one page without anything from elsewhere: it can be mailed, and needs no script. */
import type { Comparison, ReplayResult } from '#gateway/workbench/replay/replay.ts';
import type { PolicyResult } from '#gateway/workbench/replay/tally.ts';
import { shareBar, timelineChart } from './charts.ts';
import { type Html, html } from './html.ts';
import { STYLE } from './style.ts';

export function reportPage(result: ReplayResult): string {
  const { file, formats, from, to, lines, unreadable, requests, comparison, logged } = result;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Replay of ${file}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>What ${file} would have done</h1>
<p class="soft">${count(requests)} requests from ${time(from)} to ${time(to)} UTC, ${formats.join(', ')} log, ${count(lines)} lines, ${count(unreadable)} of them not readable.</p>
${cards(result)}
${timelineChart(result.spans, result.spanMs)}
${comparison === null ? html`` : comparisonSection(file, comparison)}
${
  logged === null
    ? html``
    : html`<h2>Compared with what the gateway did</h2>
<p>It denied ${count(logged.denied)} requests. ${file} denies ${count(logged.newlyDenied)} that it let through, and lets ${count(logged.newlyAllowed)} through that it denied.</p>`
}
<h2>Policies</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Policies">${policyTable(result.policies)}</div>
${mostDenied(result.policies)}
${notesSection(result)}
</main>
</body>
</html>
`.text;
}

function cards({ allowed, denied, uncovered, malformed, unknown }: ReplayResult): Html {
  const all: readonly (readonly [string, number, string])[] = [
    ['allowed', allowed, 'allowed'],
    ['denied', denied, 'denied'],
    ['without a policy', uncovered, ''],
    ['malformed', malformed, ''],
    ['cannot be judged', unknown, ''],
  ];
  const shown = all.filter(([, value], i) => i < 3 || value > 0);
  return html`<ul class="cards">${shown.map(
    ([name, value, kind]) => html`<li><strong class="${kind}">${count(value)}</strong>${name}</li>`,
  )}</ul>`;
}

function comparisonSection(file: string, comparison: Comparison): Html {
  const { against, newlyDenied, newlyAllowed, identitiesNewlyDenied, mostNewlyDenied } = comparison;
  return html`<h2>Compared with ${against}</h2>
<p>${file} denies ${count(newlyDenied)} requests of ${count(identitiesNewlyDenied)} clients more, and allows ${count(newlyAllowed)} that ${against} denies.</p>
${
  mostNewlyDenied.length === 0
    ? html``
    : html`<div class="scroll"><table><tr><th>newly denied</th><th>times</th></tr>${mostNewlyDenied.map(
        ({ identity, count: times }) =>
          html`<tr><td><code>${identity}</code></td><td>${count(times)}</td></tr>`,
      )}</table></div>`
}`;
}

function policyTable(policies: readonly PolicyResult[]): Html {
  return html`<table>
<thead><tr><th>policy</th><th class="wide">limit</th><th class="wide">allowed</th><th>denied</th><th class="wide">share denied</th><th class="wide">clients</th><th>clients denied</th><th class="wide">first denied</th></tr></thead>
<tbody>${policies.map(policyRow)}</tbody>
</table>`;
}

function policyRow(policy: PolicyResult): Html {
  const { name, limit, windowSeconds, mode, allowed, identities, identitiesDenied, firstDeniedAt } = policy;
  const denied = mode === 'shadow' ? policy.shadowDenied : policy.denied;
  const quota =
    windowSeconds === 0 ? `${count(limit)} at once` : `${count(limit)} in ${count(windowSeconds)} s`;
  return html`<tr><td>${name}${mode === 'shadow' ? html` <span class="soft">(shadow)</span>` : html``} <small>${quota}</small></td>
<td class="wide">${quota}</td><td class="wide">${count(allowed)}</td><td>${count(denied)}</td>
<td class="wide">${shareBar(allowed, denied)}</td><td class="wide">${count(identities)}</td><td>${count(identitiesDenied)}</td>
<td class="wide">${firstDeniedAt === null ? '' : time(firstDeniedAt)}</td></tr>`;
}

function mostDenied(policies: readonly PolicyResult[]): Html {
  const rows = policies.flatMap(({ name, mostDenied: most }) =>
    most.map(
      ({ identity, count: times }) =>
        html`<tr><td>${name}</td><td><code>${identity}</code></td><td>${count(times)}</td></tr>`,
    ),
  );
  if (rows.length === 0) return html``;
  return html`<h2>Denied most often</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Denied most often"><table><thead><tr><th>policy</th><th>client</th><th>times</th></tr></thead><tbody>${rows}</tbody></table></div>`;
}

function notesSection({ notes, unreadableLines }: ReplayResult): Html {
  if (notes.length === 0 && unreadableLines.length === 0) return html``;
  const unreadable = unreadableLines.map(
    ({ file, line, text }) => html`<li>not readable: ${file}:${line}: <code>${text}</code></li>`,
  );
  return html`<h2>Notes</h2><ul>${[...notes.map((note) => html`<li>${note}.</li>`), ...unreadable]}</ul>`;
}

function count(value: number): string {
  return value.toLocaleString('en');
}

function time(iso: string | null): string {
  return (iso ?? '').slice(0, 19).replace('T', ' ');
}
