/** The style of the pages for people. Colours keep a contrast of 4.5 to 1 at least, in light and in dark. */
export const style = `
:root {
  color-scheme: light dark;
  --back: #f4f6f9; --card: #fff; --text: #1b2430; --soft: #515c6b; --line: #8490a0; --faint: #dde2e9;
  --accent: #1d4ed8; --on-accent: #fff; --bad: #b3141f; --bad-back: #fdecec; --good: #14653a; --good-back: #e7f6ec;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #10151c; --card: #19202a; --text: #e7ebf0; --soft: #a8b3c1; --line: #76839a; --faint: #2c3644;
    --accent: #8db4ff; --on-accent: #0b1526; --bad: #ff9c9c; --bad-back: #3a1b1e; --good: #86dba6; --good-back: #15301f;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 1rem/1.5 system-ui, sans-serif; }
header { padding: 1rem 1.25rem; }
header a { color: var(--text); font-weight: 700; text-decoration: none; }
main {
  max-width: 27rem; margin: 1rem auto 3rem; padding: 1.5rem; background: var(--card);
  border: 1px solid var(--faint); border-radius: .75rem;
}
main.wide { max-width: 54rem; }
h1 { margin: 0 0 1rem; font-size: 1.5rem; line-height: 1.25; }
h3 { margin: 1.5rem 0 .75rem; font-size: 1rem; }
h2 { margin: 2rem 0 .5rem; font-size: 1.15rem; }
p, ul, dl, table, form { margin: 0 0 1rem; }
a { color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.field { margin-bottom: 1rem; }
label { display: block; margin-bottom: .25rem; font-weight: 600; }
select, input {
  width: 100%; padding: .6rem .7rem; border: 1px solid var(--line); border-radius: .4rem;
  background: var(--card); color: inherit; font: inherit;
}
[aria-invalid=true] { border: 2px solid var(--bad); }
.hint { margin: .25rem 0 0; color: var(--soft); font-size: .9rem; }
.error { margin: .25rem 0 0; color: var(--bad); font-size: .9rem; font-weight: 600; }
.bad, .good { padding: .7rem .9rem; border-radius: .4rem; }
.bad { background: var(--bad-back); color: var(--bad); }
.good { background: var(--good-back); color: var(--good); }
.bad a, .good a { color: inherit; }
button, .button {
  display: inline-block; padding: .6rem 1.1rem; border: 1px solid var(--accent); border-radius: .4rem;
  background: var(--accent); color: var(--on-accent); font: inherit; font-weight: 600; text-decoration: none;
  cursor: pointer;
}
button.plain { background: transparent; color: var(--accent); }
button.danger { border-color: var(--bad); background: transparent; color: var(--bad); }
.links { display: flex; flex-wrap: wrap; gap: .5rem 1.25rem; margin: 1.25rem 0 0; padding: 0; list-style: none; }
.row { display: flex; flex-wrap: wrap; gap: .75rem 1.25rem; align-items: center; }
.row { margin: 0 0 1rem; }
.row > * { margin: 0; }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(12rem, 1fr)); gap: 0 1rem; }
ul.plain { padding: 0; list-style: none; }
ul.plain > li { padding: .8rem 0; border-top: 1px solid var(--faint); }
summary { width: fit-content; color: var(--accent); cursor: pointer; }
details form { margin: 0; }
details p { margin: .4rem 0 .75rem; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
dt { color: var(--soft); font-size: .9rem; }
dd { margin: 0 0 .6rem; }
code { font: .92em ui-monospace, monospace; overflow-wrap: anywhere; }
pre { margin: 0 0 1rem; padding: .8rem; border-radius: .4rem; background: var(--back); }
pre code { white-space: pre-wrap; }
@media (max-width: 30rem) { main { margin: 0 0 2rem; border-width: 1px 0; border-radius: 0; } }
`;
