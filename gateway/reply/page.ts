/** Formats replies as HTML pages for browsers. */
import { contentSecurityPolicy, fill, type PageTemplate } from '#gateway/policy/page-template.ts';
import { CODES, type ErrorCode, QUOTA_EXCEEDED } from '#gateway/refusals/codes.ts';
import type { Seconds } from '#shared/clock.ts';
import { baseStyle, cardStyle, escapeHtml, sourceOf } from '#shared/page.ts';

/** The texts of a page. */
interface PageContent {
  readonly code: ErrorCode;
  /** The message of the JSON reply. */
  readonly message: string;
  /** Time to wait; null if waiting does not help, or the time is unknown. */
  readonly seconds: Seconds | null;
  /** Names of the denying policies; '' if there are none. */
  readonly policy: string;
  /** Id of the refusal; null if it has none. */
  readonly decision: string | null;
}

export interface Page {
  /** Alternating names and values. */
  readonly headers: readonly string[];
  readonly contentOf: (content: PageContent) => string;
}

const NEVER = 'This request is larger than the limit, so waiting does not help. Send less in one request.';

/** Formats the time to wait. The script of the page contains the same function. */
function waitText(seconds: number): string {
  if (seconds <= 120) return `${seconds} ${seconds === 1 ? 'second' : 'seconds'}`;
  if (seconds <= 7200) return `${Math.ceil(seconds / 60)} minutes`;
  if (seconds <= 172800) return `${Math.ceil(seconds / 3600)} hours`;
  return `${Math.ceil(seconds / 86400)} days`;
}

const STYLE = `${baseStyle}${cardStyle}time{font-weight:600;font-variant-numeric:tabular-nums}button{margin-bottom:1rem}`;

const SCRIPT = `{${waitText}
const time=document.querySelector('time'),button=document.querySelector('button');
const end=Date.now()+time.dateTime.slice(2,-1)*1000;
button.onclick=()=>location.reload();
(function tick(){
const left=end-Date.now();
if(left>0){time.textContent=waitText(Math.ceil(left/1000));setTimeout(tick,left%1000||1000);return}
document.querySelector('[role=status]').textContent='You can try again now.';
time.parentNode.hidden=true;
button.hidden=false;
})()}`.replace(/\n\s+/g, '\n');

const WAIT_END = `
<p role="status"></p>
<button class="primary" hidden>Try again</button>`;

export const OWN_PAGE: Page = {
  headers: headersOf(contentSecurityPolicy([sourceOf(SCRIPT)], sourceOf(STYLE), 'img-src data:; ')),
  contentOf: ({ code, message, seconds, decision }) => {
    const [heading, sentence] = wordsFor(code, message, seconds);
    const wait =
      seconds === null
        ? ''
        : `\n<p>You can try again in <time role="timer" datetime="PT${seconds}S">${waitText(seconds)}</time>.</p>${WAIT_END}`;
    const reference =
      decision === null
        ? ''
        : `\n<p class="soft">If you ask for help, give this code: <code>${decision}</code></p>`;
    // An empty icon keeps the browser from requesting one, which would count against the limit.
    return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${heading}</title>
<link rel="icon" href="data:,">
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>${heading}</h1>
<p>${sentence}</p>${wait}${reference}
</main>${seconds === null ? '' : `\n<script>${SCRIPT}</script>`}
</body>
</html>
`;
  },
};

/** Builds the page from an operator's template. */
export function pageFrom(template: PageTemplate): Page {
  return {
    headers: headersOf(template.contentSecurityPolicy),
    contentOf: ({ seconds, policy, decision }) =>
      fill(template, { seconds: String(seconds ?? ''), policy, decision: decision ?? '' }),
  };
}

function headersOf(securityPolicy: string): string[] {
  return ['Vary', 'Accept', 'Content-Security-Policy', securityPolicy, 'X-Content-Type-Options', 'nosniff'];
}

/** @returns HTML */
function wordsFor(
  code: ErrorCode,
  message: string,
  seconds: Seconds | null,
): readonly [heading: string, sentence: string] {
  const { heading, sentence, type } = CODES[code];
  if (type === QUOTA_EXCEEDED && seconds === null) return [heading, NEVER];
  if (sentence !== undefined) return [heading, sentence];
  const own = `${message.charAt(0).toUpperCase()}${message.slice(1)}`;
  return [heading, escapeHtml(/[.!?]$/.test(own) ? own : `${own}.`)];
}
