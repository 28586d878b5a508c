/** Styles for the pages of the survey API, in addition to those of all pages: forms, messages, lists. */
import { baseStyle, cardStyle, compact } from '#shared/page.ts';

const ownStyle = compact(`
:root { --calm: #e7f6ec; }
@media (prefers-color-scheme: dark) { :root { --calm: #15301f; } }
header { padding: .75rem 1.25rem; background: var(--page); border-bottom: 1px solid var(--line); }
header a { color: var(--ink); font-weight: 700; text-decoration: none; }
main { margin-top: 2rem; }
main.wide { max-width: 54rem; }
h2 { margin: 2rem 0 .5rem; font-size: 1.15rem; }
h3 { margin: 1.5rem 0 .75rem; font-size: 1rem; }
ul, dl, table, form { margin: 0 0 1rem; }
.field { margin-bottom: 1rem; }
label { display: block; margin-bottom: .25rem; font-weight: 600; }
select, input { width: 100%; padding: .5rem .7rem; }
[aria-invalid=true] { border-width: 2px; }
.hint { margin: .25rem 0 0; color: var(--soft); font-size: .9rem; }
.error { margin: .25rem 0 0; color: var(--bad); font-size: .9rem; font-weight: 600; }
.bad, .good { padding: .6rem .8rem; border-left: 4px solid; border-radius: 4px; }
.bad { background: var(--alarm); color: var(--bad); }
.good { background: var(--calm); color: var(--good); }
.bad a, .good a { color: inherit; }
a.primary {
  display: inline-block;
  padding: .5rem 1rem;
  border-radius: 6px;
  background: var(--accent);
  color: var(--page);
  font-weight: 600;
  text-decoration: none;
}
.links { display: flex; flex-wrap: wrap; gap: .5rem 1.25rem; margin: 1.25rem 0 0; padding: 0; list-style: none; }
.row { display: flex; flex-wrap: wrap; gap: .75rem 1.25rem; align-items: center; margin: 0 0 1rem; }
.row > * { margin: 0; }
ul.plain { padding: 0; list-style: none; }
ul.plain > li { padding: .8rem 0; border-top: 1px solid var(--line); }
summary { width: fit-content; color: var(--accent); cursor: pointer; }
details form { margin: 0; }
details p { margin: .4rem 0 .75rem; }
.hidden-text { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
dt { color: var(--soft); font-size: .9rem; }
dd { margin: 0 0 .6rem; }
pre { margin: 0 0 1rem; padding: .8rem; border-radius: 6px; background: var(--card); }
pre code { white-space: pre-wrap; }
@media (max-width: 30rem) { main { margin-top: 0; } }
`);

export const style = baseStyle + cardStyle + ownStyle;
