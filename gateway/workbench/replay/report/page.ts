/** Shows the result of a replay as one self-contained page, without scripts, which can be mailed. */
import { spanText } from '#gateway/policy/allowance.ts';
import { count } from '#gateway/workbench/number-text.ts';
import type { Comparison, ReplayResult } from '#gateway/workbench/replay/replay.ts';
import type { PolicyResult } from '#gateway/workbench/replay/tally.ts';
import { shareBar, timelineChart } from './charts.ts';
import { Html, html } from './html.ts';

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
  const { name, limit, algorithm, mode, allowed, identities, identitiesDenied, firstDeniedAt } = policy;
  const denied = mode === 'shadow' ? policy.shadowDenied : policy.denied;
  const quota = `${count(limit)} ${algorithm === 'concurrency' ? '' : 'in '}${spanText(policy)}`;
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

function time(iso: string | null): string {
  return (iso ?? '').slice(0, 19).replace('T', ' ');
}

/** Style of the page, for light and dark mode, and wide and narrow screens. It loads nothing from elsewhere. */
const STYLE = new Html(`
:root { color-scheme: light dark; --allowed: light-dark(#2f6fb0, #6ea8e0); --denied: light-dark(#c2571a, #f0935a);
  --ink: light-dark(#1b2330, #e4e8ee); --soft: light-dark(#55606e, #9fabba); --line: light-dark(#d9dfe6, #323a45);
  --page: light-dark(#ffffff, #14181d); --card: light-dark(#f4f6f9, #1c222a); }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 64rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; } h2 { font-size: 1.15rem; margin: 2.5rem 0 .5rem; }
p { margin: .25rem 0; } .soft { color: var(--soft); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: .75rem; margin: 1.25rem 0; padding: 0; list-style: none; }
.cards li { background: var(--card); border-radius: .5rem; padding: .6rem .8rem; }
.cards strong { display: block; font-size: 1.35rem; font-variant-numeric: tabular-nums; }
.allowed { color: var(--allowed); } .denied { color: var(--denied); }
figure { margin: 0; } .bars { display: block; width: 100%; height: 11rem; border-bottom: 1px solid var(--line); }
.bars .allowed { fill: var(--allowed); } .bars .denied { fill: var(--denied); }
.axis { display: flex; justify-content: space-between; gap: 1rem; font-size: .8rem; color: var(--soft); }
.key { white-space: nowrap; } .key::before { content: ""; display: inline-block; width: .75em; height: .75em; margin: 0 .4em 0 .8em; border-radius: 2px; background: currentColor; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--soft); font-weight: 500; } th:first-child, td:first-child { text-align: left; padding-left: 0; }
td:first-child { white-space: normal; overflow-wrap: break-word; } td small { display: none; color: var(--soft); }
td .share { display: block; width: 7rem; height: .5rem; border-radius: 2px; }
code { font-family: ui-monospace, monospace; font-size: .85em; }
@media (max-width: 40rem) { .wide { display: none; } td small { display: block; } }
@media print { body { max-width: none; } }
`);
