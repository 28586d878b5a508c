/** An access log under an edited policy file: what is sent, and what is wrong with it. */
import { upload } from './api.js';
import { byId, count, el, setText } from './dom.js';
import { replayResult } from './replay-result.js';

/** As the gateway takes them. */
const POLICY_BYTES_MAX = 262_144;
const LOG_BYTES_MAX = 67_108_864;

/** The file in use, as the text was last filled with it. */
let filledWith = '';
let inUse = '';
/** Of the replay under way; null: there is none. */
let running = null;

/** The file in use; what somebody has edited stays. */
export function takeFile(text) {
  inUse = text;
  const field = byId('replay-text');
  if (field.value === '' || field.value === filledWith) fill();
  showState();
}

function fill() {
  byId('replay-text').value = inUse;
  // As the field has it, which may have other ends of lines.
  filledWith = byId('replay-text').value;
  showMistakes('', []);
}

function showState() {
  const isEdited = byId('replay-text').value !== filledWith;
  const isOld = isEdited && filledWith !== inUse.replaceAll('\r\n', '\n');
  byId('replay-restore').hidden = !isEdited;
  const old = isOld ? '; the file in use has changed since' : '';
  setText(byId('replay-state'), isEdited ? `Edited${old}.` : 'As the file in use.');
}

/** Of the edited file, with the way to each. @param {{ line: number, column: number, message: string, fix: string }[]} problems */
function showMistakes(text, problems) {
  const field = byId('replay-text');
  if (text === '') field.removeAttribute('aria-invalid');
  else field.setAttribute('aria-invalid', 'true');
  field.setAttribute('aria-describedby', 'replay-mistakes');
  byId('replay-mistakes').replaceChildren(
    ...(text === '' ? [] : [el('p', { class: 'error' }, text)]),
    ...(problems.length === 0
      ? []
      : [
          el(
            'ul',
            {},
            ...problems.map(({ line, column, message, fix }) =>
              el(
                'li',
                {},
                el(
                  'button',
                  { type: 'button', class: 'small', onclick: () => select(line) },
                  `Line ${line}, column ${column}`,
                ),
                ` ${message}; ${fix}`,
              ),
            ),
          ),
        ]),
  );
}

function select(line) {
  const field = byId('replay-text');
  const lines = field.value.split('\n');
  const start = lines.slice(0, line - 1).join('\n').length + (line > 1 ? 1 : 0);
  field.focus();
  field.setSelectionRange(start, start + (lines[line - 1] ?? '').length);
  const height = field.scrollHeight / Math.max(1, lines.length);
  field.scrollTop = Math.max(0, (line - 4) * height);
}

function showStatus(text, isBad = false) {
  setText(byId('replay-status'), text);
  byId('replay-status').className = isBad ? 'error' : '';
}

function showProgress(part) {
  const progress = byId('replay-progress');
  progress.hidden = part === null;
  if (part === null) return;
  if (part < 1) progress.value = part;
  else progress.removeAttribute('value');
  const text = part < 1 ? 'Sending the log…' : 'Replaying it…';
  if (byId('replay-status').textContent !== text) showStatus(text);
}

/** @returns {string} what is wrong with it; '': nothing */
function tooLarge(policy, log) {
  if (policy.size > POLICY_BYTES_MAX)
    return 'A policy file to try has at most 256 KiB here; use floodgate replay on the command line.';
  if (log.size > LOG_BYTES_MAX)
    return `${log.name} has more than 64 MiB; compress it with gzip, or use floodgate replay on the command line.`;
  return '';
}

async function replay() {
  const policy = new Blob([byId('replay-text').value]);
  const log = byId('replay-log').files[0];
  const problem = log === undefined ? 'Choose a log first.' : tooLarge(policy, log);
  showMistakes('', []);
  byId('replay-result').replaceChildren();
  if (problem !== '') {
    showStatus(problem, true);
    return;
  }
  running = new AbortController();
  byId('replay-start').disabled = true;
  byId('replay-cancel').hidden = false;
  showProgress(0);
  const path = `/api/replay?policyBytes=${policy.size}`;
  const { status, document } = await upload(path, new Blob([policy, log]), showProgress, running.signal);
  running = null;
  byId('replay-start').disabled = false;
  byId('replay-cancel').hidden = true;
  showProgress(null);
  if (status === 200) {
    showStatus('');
    byId('replay-result').replaceChildren(replayResult(document));
    return;
  }
  const { message, problems = [] } = document;
  if (problems.length === 0) showStatus(message, true);
  else {
    showStatus('');
    showMistakes(
      `The edited file has ${problems.length === 1 ? 'a mistake' : `${count(problems.length)} mistakes`}:`,
      problems,
    );
  }
}

function drop(event) {
  const files = event.dataTransfer?.files ?? [];
  if (files.length === 0) return;
  if (files.length > 1) {
    showStatus('One log at a time; join them into one.', true);
    return;
  }
  byId('replay-log').files = files;
  showStatus('');
}

export function wireReplay() {
  const zone = byId('replay-drop');
  const mark = (isOver) => zone.classList.toggle('over', isOver);
  // Beside the zone the browser would open the file in place of the page.
  for (const name of ['dragover', 'drop'])
    window.addEventListener(name, (event) => {
      if (event.target !== byId('replay-log')) event.preventDefault();
    });
  zone.addEventListener('dragover', () => mark(true));
  zone.addEventListener('dragleave', () => mark(false));
  zone.addEventListener('drop', (event) => {
    event.preventDefault();
    mark(false);
    drop(event);
  });
  byId('replay-text').addEventListener('input', showState);
  byId('replay-restore').addEventListener('click', () => {
    fill();
    showState();
    byId('replay-text').focus();
  });
  byId('replay-cancel').addEventListener('click', () => running?.abort());
  byId('replay-form').addEventListener('submit', (event) => {
    event.preventDefault();
    if (running === null) replay();
  });
}
