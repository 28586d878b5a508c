/** The page: who may look, what is live, and what brings it up to date. */
import { call, listen, signIn, signOut, whenSignedOut } from './api.js';
import { closeDialog, whenChanged } from './changes.js';
import { showChart, wireChart } from './chart.js';
import {
  keepAddresses,
  loadBans,
  openClient,
  refreshClient,
  sharedScope,
  showClients,
  showFirst,
  wireClients,
} from './clients.js';
import { byId, on, patch, redraw, whenDue } from './dom.js';
import { showNow, showStatus } from './now.js';
import {
  isFileRefused,
  loadPolicies,
  showGateway,
  showLine,
  showPolicies,
  wirePolicies,
} from './policies.js';
import { hearRefusals, loadRefusals, showNewest, showOfClient, wireRefusals } from './refusals.js';
import { clockTime } from './text.js';
import { Traffic } from './traffic.js';
import { wireTry } from './try.js';
import { follow, isShown, wireViews } from './views.js';
import { why } from './why.js';

const AGAIN_MS = 1000;
const AGAIN_MS_MAX = 10_000;
const SILENT_MS = 5000;
/** Bans are read at this interval. */
const BANS_SECONDS = 5;
/** Shown only to those who may look. */
const CONTENT = ['content', 'views', 'search', 'status', 'help', 'pause'];

const traffic = new Traffic();
let stop = new AbortController();
let version = null;
let seconds = 0;
let heardAt = 0;
/** The last event of the stream, and the one that is shown; null: none yet. */
let last = null;
let shown = null;
let isPaused = false;

/** Draws the view that is shown. */
function draw() {
  showGateway();
  if (isShown('policies')) showPolicies(traffic);
  if (isShown('overview')) {
    showNow(traffic);
    showChart(traffic);
    showNewest(sharedScope(shown));
  }
  if (isShown('clients')) showOfClient(sharedScope(shown));
  if (shown === null) return;
  showStatus(traffic, shown, isFileRefused());
  if (isShown('overview')) showFirst(shown, traffic.since);
  if (isShown('clients')) showClients(shown, traffic.since);
}

/** @param {string} text @param {string} kind a class */
function showConnection(text, kind) {
  patch(byId('connection'), text);
  byId('connection').className = kind;
}

function showLive() {
  showGone('');
  showConnection(isPaused ? 'Paused' : 'Live', isPaused ? '' : 'live');
}

/** @param {string} why '': the gateway is there */
function showGone(why) {
  document.body.classList.toggle('gone', why !== '');
  byId('gone').hidden = why === '';
  if (why === '') return;
  showConnection('Not live', 'bad');
  const seen = heardAt === 0 ? '' : ` Last seen ${clockTime(heardAt)}; what is shown is from then.`;
  patch(byId('gone'), `The gateway is gone: ${why}.${seen} The page returns by itself.`);
}

/** @param {string} text '': none */
function showProblem(text) {
  byId('problem').hidden = text === '';
  patch(byId('problem'), text);
}

function onEvent(name, data) {
  heardAt = Date.now();
  showLive();
  if (name === 'traffic') {
    traffic.take(data);
    loadRefusals();
  } else {
    traffic.add(data);
    last = data;
    if (data.policyVersion !== null && data.policyVersion !== version) {
      version = data.policyVersion;
      loadPolicies();
    }
  }
  if (!isPaused) showLast();
}

/** Shows the last second, with what it brings. */
function showLast() {
  if (last !== null && last !== shown) {
    shown = last;
    keepAddresses(last);
    hearRefusals(last.denials);
    if (seconds++ % BANS_SECONDS === 0) loadBans();
  }
  redraw();
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

/** @param {boolean} mayLook @param {boolean} [canSignOut] */
function open(mayLook, canSignOut = mayLook) {
  for (const id of CONTENT) byId(id).hidden = !mayLook;
  byId('sign-out').hidden = !canSignOut;
  byId('sign-in').hidden = mayLook;
}

function showSignIn() {
  stop.abort();
  showGone('');
  open(false);
  closeDialog();
  showConnection('Not signed in', '');
  byId('sign-in-form').token.focus();
}

async function begin() {
  let session;
  try {
    session = await call('GET', '/api/session');
  } catch (error) {
    showConnection('Not live', '');
    showProblem(error.message);
    // A gateway that is just being restarted is there in a moment; one that refuses stays so.
    if (error.status === 0) setTimeout(begin, AGAIN_MS);
    return;
  }
  showProblem('');
  if (session.isNeeded && !session.isSignedIn) return showSignIn();
  open(true, session.isNeeded);
  version = null;
  stayConnected();
  follow();
}

on('sign-in-form', 'submit', async (event) => {
  event.preventDefault();
  const form = event.target;
  const error = byId('sign-in-error');
  try {
    await signIn(form.token.value);
    patch(error);
    form.reset();
    await begin();
  } catch (problem) {
    patch(error, problem.message);
  }
});
on('sign-out', 'click', async () => {
  await signOut();
  showSignIn();
});
on('pause', 'click', () => {
  isPaused = !isPaused;
  byId('pause').setAttribute('aria-pressed', String(isPaused));
  showLive();
  if (isPaused) return;
  loadRefusals();
  loadBans();
  showLast();
});
whenSignedOut(showSignIn);
whenDue(draw);
whenChanged(() => {
  loadPolicies();
  refreshClient();
  loadBans(true);
});
setInterval(() => {
  if (heardAt > 0 && Date.now() - heardAt > SILENT_MS && byId('gone').hidden && !stop.signal.aborted)
    showGone('it sends nothing');
}, AGAIN_MS);
patch(byId('zone'), `Times are in ${Intl.DateTimeFormat().resolvedOptions().timeZone}.`);
wirePolicies();
wireRefusals();
wireClients();
wireChart();
wireTry();
wireViews({
  overview: () => loadBans(),
  clients(digest) {
    loadBans();
    openClient(digest);
  },
  policies: showLine,
  why,
});
begin();
