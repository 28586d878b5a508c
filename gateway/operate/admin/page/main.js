/** The page: who may look, what is live, and what brings it up to date. */
import { call, listen, signIn, signOut, whenSignedOut } from './api.js';
import { whenChanged } from './changes.js';
import { showChart, wireChart } from './chart.js';
import { takeAddresses } from './client.js';
import {
  loadBans,
  openClient,
  refreshClient,
  showAddressState,
  showLimited,
  showPaths,
  wireClients,
} from './clients.js';
import { byId, clockTime, setText } from './dom.js';
import { showNow, showStatus, showVisitors } from './now.js';
import { loadPolicies, showLine, showTable, wirePolicies } from './policies.js';
import { hearRefusals, loadRefusals, showRefusals, wireRefusals } from './refusals.js';
import { Traffic } from './traffic.js';
import { wireTry } from './try.js';
import { follow, isShown, wireViews } from './views.js';
import { why } from './why.js';

const AGAIN_MS = 1000;
const AGAIN_MS_MAX = 10_000;
const SILENT_MS = 5000;
/** The table of policies is sorted and drawn at this interval. */
const REDRAW_SECONDS = 5;
/** Shown only to those who may look. */
const CONTENT = ['content', 'views', 'search', 'status', 'help', 'pause'];

const traffic = new Traffic();
let stop = new AbortController();
let version = null;
let seconds = 0;
let heardAt = 0;
/** The last event of the stream; null: none yet. */
let last = null;
let isPaused = false;
/** @type {(() => void)[]} */
let due = [];

function showProblem(text) {
  byId('problem').hidden = text === '';
  setText(byId('problem'), text);
}

function showLive() {
  showGone('');
  setText(byId('connection'), isPaused ? 'Paused' : 'Live');
  byId('connection').className = isPaused ? '' : 'live';
}

/** @param {string} why '': the gateway is there */
function showGone(why) {
  const banner = byId('gone');
  document.body.classList.toggle('gone', why !== '');
  banner.hidden = why === '';
  if (why === '') return;
  setText(byId('connection'), 'Not live');
  byId('connection').className = 'bad';
  const seen = heardAt === 0 ? '' : ` Last seen ${clockTime(heardAt)}; what is shown is from then.`;
  setText(banner, `The gateway is gone: ${why}.${seen} The page returns by itself.`);
}

function onEvent(name, data) {
  heardAt = Date.now();
  showLive();
  if (name === 'traffic') {
    traffic.take(data);
    showChart(traffic);
    showTable(traffic);
    loadRefusals();
  } else if (name === 'second') {
    traffic.add(data);
    last = data;
    if (data.policyVersion !== null && data.policyVersion !== version) {
      version = data.policyVersion;
      loadPolicies(traffic);
    }
    if (isPaused) return;
    takeAddresses(data.addresses);
    hearRefusals(data.denials);
    showSecond();
  }
}

/** Draws what changes every second. */
function showSecond() {
  if (last === null) return;
  const isSorting = ++seconds % REDRAW_SECONDS === 0;
  draw([
    () => showStatus(traffic, last),
    ...(isShown('overview')
      ? [
          () => showNow(traffic),
          () => showVisitors(traffic, last.totals),
          () => showChart(traffic),
          () => showPaths(last, traffic.since),
        ]
      : []),
    () => showAddressState(last),
    () => showLimited(last, traffic.since),
    showRefusals,
    ...(isSorting ? [() => showTable(traffic), () => loadBans()] : []),
  ]);
}

/**
 * Draws each part in a frame of its own, so that no frame takes long on a slow machine. A hidden page draws nothing, and
 * then only the newest parts.
 *
 * @param {(() => void)[]} parts
 */
function draw(parts) {
  const isIdle = due.length === 0;
  due = parts;
  if (isIdle) requestAnimationFrame(drawNext);
}

function drawNext() {
  due.shift()?.();
  if (due.length > 0) requestAnimationFrame(drawNext);
}

/** Until the page is closed, or somebody signs out. */
async function stayConnected() {
  stop.abort();
  stop = new AbortController();
  const { signal } = stop;
  let why = 'it ended the connection';
  for (let waitMs = AGAIN_MS; !signal.aborted; waitMs = Math.min(2 * waitMs, AGAIN_MS_MAX)) {
    try {
      await listen((name, data) => {
        waitMs = AGAIN_MS;
        onEvent(name, data);
      }, signal);
    } catch (error) {
      if (signal.aborted || error.status === 401) return;
      why = error.status === 0 ? 'it does not answer' : error.message;
    }
    if (signal.aborted) return;
    showGone(why);
    await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
}

function showSignIn() {
  stop.abort();
  showGone('');
  for (const id of [...CONTENT, 'sign-out']) byId(id).hidden = true;
  byId('dialog').close();
  byId('sign-in').hidden = false;
  setText(byId('connection'), 'Not signed in');
  byId('connection').className = '';
  byId('sign-in-form').token.focus();
}

async function begin() {
  let session;
  try {
    session = await call('GET', '/api/session');
  } catch (error) {
    setText(byId('connection'), 'Not live');
    showProblem(error.message);
    // A gateway that is just being restarted is there in a moment; one that refuses stays so.
    if (error.status === 0) setTimeout(begin, AGAIN_MS);
    return;
  }
  showProblem('');
  if (session.isNeeded && !session.isSignedIn) {
    showSignIn();
    return;
  }
  byId('sign-in').hidden = true;
  for (const id of CONTENT) byId(id).hidden = false;
  byId('sign-out').hidden = !session.isNeeded;
  version = null;
  stayConnected();
  follow();
}

byId('sign-in-form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const form = event.target;
  const error = form.querySelector('.error');
  try {
    await signIn(form.token.value);
    error.hidden = true;
    form.reset();
    await begin();
  } catch (problem) {
    error.hidden = false;
    setText(error, problem.message);
  }
});
byId('sign-out').addEventListener('click', async () => {
  await signOut();
  showSignIn();
});
byId('pause').addEventListener('click', () => {
  isPaused = !isPaused;
  byId('pause').setAttribute('aria-pressed', String(isPaused));
  showLive();
  if (isPaused) return;
  loadRefusals();
  loadBans();
  showSecond();
});
whenSignedOut(showSignIn);
whenChanged(() => {
  loadPolicies(traffic);
  refreshClient();
  loadBans(true);
  showSecond();
});
// Who has no pointer scrolls them with the keys.
for (const region of document.querySelectorAll('.scroll')) region.setAttribute('tabindex', '0');
setInterval(() => {
  if (heardAt > 0 && Date.now() - heardAt > SILENT_MS && byId('gone').hidden && !stop.signal.aborted)
    showGone('it sends nothing');
}, AGAIN_MS);
wirePolicies(traffic);
wireRefusals();
wireClients();
wireChart();
wireTry();
wireViews({
  clients: openClient,
  policies: showLine,
  why,
  shown() {
    showSecond();
    loadBans();
    showTable(traffic, true);
  },
});
begin();
