/** The page: who may look, what is live, and what brings it up to date. */
import { call, listen, signIn, signOut } from './api.js';
import { closeDialog } from './changes.js';
import { showChart } from './chart.js';
import { takeAddresses } from './client.js';
import { loadBans, openClient, refreshClient, sharedScope, showClients, showLimited } from './clients.js';
import { byId, on, patch, redraw } from './dom.js';
import { showNow, showStatus } from './now.js';
import { isFileRefused, loadPolicies, showLine, showPolicies } from './policies.js';
import { hearRefusals, loadRefusals, showNewest, showOfClient } from './refusals.js';
import { clockTime } from './text.js';
import { Traffic } from './traffic.js';
import { follow, isShown, wireViews } from './views.js';
import { why } from './why.js';

const AGAIN_MS = 1000;
const AGAIN_MS_MAX = 10_000;
const SILENT_MS = 5000;
/** Bans are read at this interval. */
const BANS_SECONDS = 5;
/** Shown only to those who may look. */
const CONTENT = ['content', 'views', 'search', 'status'];

const traffic = new Traffic();
let stop = new AbortController();
let version = null;
let seconds = 0;
let heardAt = 0;
/** The last event of the stream; null: none yet. */
let second = null;

/** Draws the view that is shown. */
function draw() {
  if (isShown('policies')) showPolicies(traffic);
  if (isShown('overview')) {
    showNow(traffic);
    showChart(traffic);
    showNewest(sharedScope(second));
  }
  if (isShown('clients')) showOfClient(sharedScope(second));
  if (second === null) return;
  showStatus(traffic, second, isFileRefused());
  if (isShown('overview')) showLimited(second);
  if (isShown('clients')) showClients(second);
}

/** @param {string} text @param {string} kind a class */
function showConnection(text, kind) {
  patch(byId('connection'), text);
  byId('connection').className = kind;
}

/** @param {string} text why nothing is live; '': it is */
function showGone(text) {
  document.body.classList.toggle('gone', text !== '');
  byId('gone').hidden = text === '';
  patch(byId('gone'), text);
  if (text !== '') showConnection('Not live', 'bad');
}

/** @param {string} why the gateway is gone */
function tellGone(why) {
  const seen = heardAt === 0 ? '' : ` Last seen ${clockTime(heardAt)}; what is shown is from then.`;
  showGone(`The gateway is gone: ${why}.${seen} The page returns by itself.`);
}

function onEvent(name, data) {
  heardAt = Date.now();
  showGone('');
  showConnection('Live', 'live');
  if (name === 'traffic') {
    traffic.take(data);
    loadRefusals();
  } else {
    second = data;
    traffic.add(data);
    takeAddresses(data.addresses);
    hearRefusals(data.denials);
    if (seconds++ % BANS_SECONDS === 0) loadBans();
    if (data.policyVersion !== null && data.policyVersion !== version) {
      version = data.policyVersion;
      loadPolicies();
    }
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
    tellGone(why);
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
    showGone(error.message);
    // A gateway that is just being restarted is there in a moment; one that refuses stays so.
    if (error.status === 0) setTimeout(begin, AGAIN_MS);
    return;
  }
  showGone('');
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
document.addEventListener('signed-out', showSignIn);
document.addEventListener('draw', draw);
document.addEventListener('changed', () => {
  loadPolicies();
  refreshClient();
  loadBans(true);
});
setInterval(() => {
  if (heardAt > 0 && Date.now() - heardAt > SILENT_MS && byId('gone').hidden && !stop.signal.aborted)
    tellGone('it sends nothing');
}, AGAIN_MS);
patch(byId('zone'), `Times are in ${Intl.DateTimeFormat().resolvedOptions().timeZone}.`);
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
