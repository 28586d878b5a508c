/** The page: who may look, what is live, and what brings it up to date. */
import { call, listen, signIn, signOut, whenSignedOut } from './api.js';
import { whenChanged } from './changes.js';
import { refreshClient, showLimited, wireClients } from './clients.js';
import { addDenials, catchUp, loadDenials, wireDenials } from './denials.js';
import { byId, isInUse, setText } from './dom.js';
import { showHour, showNow } from './now.js';
import { loadPolicies, showCounts, showTable, wirePolicies } from './policies.js';
import { wireReplay } from './replay.js';
import { Traffic } from './traffic.js';
import { wireTry } from './try.js';

const AGAIN_MS = 1000;
const AGAIN_MS_MAX = 10_000;
const SILENT_MS = 5000;
/** The chart and the order of the table are redrawn so often, in seconds. */
const REDRAW_SECONDS = 5;

const traffic = new Traffic();
let stop = new AbortController();
let version = null;
let seconds = 0;
let heardAt = 0;

function showConnection(text, isLost) {
  setText(byId('connection'), text);
  byId('connection').className = isLost ? 'bad' : '';
}

function showProblem(text) {
  byId('problem').hidden = text === '';
  setText(byId('problem'), text);
}

function onEvent(name, data) {
  heardAt = Date.now();
  showConnection('Live', false);
  if (name === 'traffic') {
    traffic.take(data);
    showHour(traffic);
    showTable(traffic);
    catchUp();
  } else if (name === 'second') {
    const changed = traffic.add(data);
    showNow(traffic, data);
    showCounts(traffic, changed);
    showLimited(data.limited);
    addDenials(data.denials);
    if (data.policyVersion !== null && data.policyVersion !== version) {
      version = data.policyVersion;
      loadPolicies(traffic);
    }
    if (++seconds % REDRAW_SECONDS === 0) {
      showHour(traffic);
      if (!isInUse(byId('policy-table'))) showTable(traffic);
    }
  }
}

/** Until the page is closed, or somebody signs out. */
async function stayConnected() {
  stop.abort();
  stop = new AbortController();
  const { signal } = stop;
  let why = 'the gateway ended it';
  for (let waitMs = AGAIN_MS; !signal.aborted; waitMs = Math.min(2 * waitMs, AGAIN_MS_MAX)) {
    try {
      await listen((name, data) => {
        waitMs = AGAIN_MS;
        onEvent(name, data);
      }, signal);
    } catch (error) {
      if (signal.aborted || error.status === 401) return;
      why = error.message;
    }
    if (signal.aborted) return;
    showConnection(`Not live: ${why}; trying again`, true);
    await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
}

function showSignIn() {
  stop.abort();
  for (const id of ['content', 'sections', 'sign-out']) byId(id).hidden = true;
  byId('sign-in').hidden = false;
  showConnection('Not signed in', false);
  byId('sign-in-form').token.focus();
}

async function begin() {
  let session;
  try {
    session = await call('GET', '/api/session');
  } catch (error) {
    showConnection('Closed', true);
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
  for (const id of ['content', 'sections']) byId(id).hidden = false;
  byId('sign-out').hidden = !session.isNeeded;
  version = null;
  stayConnected();
  loadDenials();
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
whenSignedOut(showSignIn);
whenChanged(() => {
  loadPolicies(traffic);
  refreshClient();
});
// Who has no pointer scrolls them with the keys.
for (const region of document.querySelectorAll('.scroll')) region.setAttribute('tabindex', '0');
setInterval(() => {
  const silentMs = Date.now() - heardAt;
  if (heardAt > 0 && silentMs > SILENT_MS && byId('connection').textContent === 'Live')
    showConnection(`Nothing heard for ${Math.round(SILENT_MS / 1000)} s`, true);
}, AGAIN_MS);
wirePolicies(traffic);
wireDenials();
wireClients();
wireTry();
wireReplay();
begin();
