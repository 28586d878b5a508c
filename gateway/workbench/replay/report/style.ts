/** Of the report: light and dark, wide and narrow; nothing is loaded from elsewhere. */
import { Html } from './html.ts';

export const STYLE = new Html(`
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
