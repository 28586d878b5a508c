/**
 * The style of all pages for people: the operator's page, the refusals of the gateway, and the pages of the survey API.
 * A page has this style and its own, and loads nothing from elsewhere.
 */
import { hash } from 'node:crypto';

/** Colours, type, links and controls. Text has a contrast of at least 4.5 to 1. */
export const baseStyle = compact(`
:root {
  color-scheme: light dark;
  --accent: #2768ab;
  --bad: #b3261e;
  --good: #1f7a3d;
  --ink: #1a212b;
  --soft: #566170;
  --line: #e1e5ea;
  --edge: #858f9b;
  --ground: #f5f6f8;
  --page: #fff;
  --card: #f3f5f8;
  --alarm: #fdecea;
}
@media (prefers-color-scheme: dark) {
  :root {
    --accent: #6ea8e0;
    --bad: #f28b82;
    --good: #6cc788;
    --ink: #e4e8ee;
    --soft: #a0abb9;
    --line: #2c343e;
    --edge: #6f7a88;
    --ground: #0f1318;
    --page: #171c23;
    --card: #1f262f;
    --alarm: #3b1a18;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); overflow-wrap: anywhere; }
a { color: var(--accent); text-underline-offset: .15em; }
code, kbd { font-family: ui-monospace, monospace; font-size: .93em; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
input, select, textarea, button {
  font: inherit;
  color: var(--ink);
  background: var(--page);
  border: 1px solid var(--edge);
  border-radius: 6px;
  max-width: 100%;
}
button { background: var(--card); cursor: pointer; overflow-wrap: normal; }
button:hover { border-color: var(--ink); }
button.primary { background: var(--accent); border-color: var(--accent); color: var(--page); }
button.danger { background: none; border-color: var(--line); color: var(--bad); }
button.danger:hover { border-color: var(--bad); }
[aria-invalid=true] { border-color: var(--bad); }
[hidden] { display: none !important; }
`);

/** A page with one card, for messages and forms. */
export const cardStyle = compact(`
body { font: 1rem/1.5 system-ui, sans-serif; }
main {
  max-width: 27rem;
  margin: 4rem auto 3rem;
  padding: 1.5rem;
  background: var(--page);
  border: 1px solid var(--line);
  border-radius: 8px;
}
h1 { margin: 0 0 .75rem; font-size: 1.4rem; line-height: 1.25; letter-spacing: -.01em; }
p { margin: 0 0 1rem; }
main > :last-child { margin-bottom: 0; }
button { padding: .5rem 1rem; font-weight: 600; }
.soft { color: var(--soft); font-size: .9rem; }
@media (max-width: 30rem) { main { margin: 0 0 2rem; border-width: 0 0 1px; border-radius: 0; } }
`);

/** Removes the space between lines, which would be sent with every page. */
export function compact(css: string): string {
  return css.replace(/\s*\n\s*/g, '').replace(/\s*([{};,])\s*|(:) /g, '$1$2');
}

/**
 * Returns the source expression that allows the script or style with this text (Content Security Policy Level 3,
 * 2.3.1).
 */
export function sourceOf(text: string): string {
  return `'sha256-${hash('sha256', text, 'base64')}'`;
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
