/**
 * Runs a command in a Node.js process of its own. If it is a gateway, SIGUSR2 starts the installed version, and ends the
 * old gateway when the new one is ready. This file uses only features of Node 20.
 */
import { spawn } from 'node:child_process';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** @param {{ node: string, args: string[], env: Record<string, string | undefined>, isGateway: boolean }} options */
export function takeOver({ node, args, env, isGateway }) {
  /** All processes that have not ended. An old gateway may finish its requests beside the new one. */
  const running = new Set();
  let current = launch();
  /** The new gateway that is starting. */
  let next = null;
  let isStopping = false;
  /** How the gateway ended that served last. */
  let outcome = { code: 70, signal: null };

  function launch() {
    // The gateway shuts down when its IPC channel closes. So it ends together with this process.
    const stdio = isGateway ? ['inherit', 'inherit', 'inherit', 'ipc'] : 'inherit';
    const child = spawn(node, args, { env, stdio });
    running.add(child);
    child.on('error', (error) => {
      if (child.pid !== undefined) return;
      report(`${node} cannot be started: ${error.message}`);
      onEnd(child, 70, null);
    });
    child.on('exit', (code, signal) => onEnd(child, code, signal));
    return child;
  }

  function onEnd(child, code, signal) {
    running.delete(child);
    if (child === next) {
      next = null;
      if (!isStopping) report('the new gateway did not start, so the old one goes on');
    } else if (child === current && next !== null) {
      current = next;
      next = null;
    } else if (child === current) {
      outcome = { code, signal };
      // Without a gateway that serves, the process manager should start one at once.
      if (!isStopping) end();
    }
    if (running.size === 0) end();
  }

  function end() {
    const { code, signal } = outcome;
    if (signal === null) process.exit(code ?? 70);
    for (const name of SIGNALS) process.removeAllListeners(name);
    process.kill(process.pid, signal);
  }

  function replace() {
    if (isStopping || next !== null) return;
    if (env.GATEWAY_REUSE_PORT !== '1') {
      report('SIGUSR2 needs GATEWAY_REUSE_PORT=1, so that the old and the new gateway can share their ports');
      return;
    }
    const started = launch();
    next = started;
    started.on('message', (message) => {
      if (message !== 'ready' || next !== started) return;
      const old = current;
      current = started;
      next = null;
      old.kill('SIGTERM');
    });
  }

  /** An old gateway has had its signal. A second one would end it before its requests have finished. */
  function pass(signal) {
    const isForAll = isStopping && signal !== 'SIGHUP';
    if (signal !== 'SIGHUP') isStopping = true;
    for (const child of running) if (isForAll || child === current || child === next) child.kill(signal);
  }

  for (const signal of SIGNALS) {
    // A terminal sends Ctrl-C to both processes. A second signal would end the gateway at once.
    const comesTwice = signal === 'SIGINT' && process.stdin.isTTY === true;
    process.on(signal, () => comesTwice || pass(signal));
  }
  if (isGateway && process.platform !== 'win32') process.on('SIGUSR2', replace);
  // npx runs this program in a shell that does not pass signals on. If the shell has ended, the user has stopped npx.
  const parent = process.ppid;
  if (process.env.npm_command === 'exec')
    setInterval(() => process.ppid === parent || isStopping || pass('SIGTERM'), 500).unref();
}

function report(text) {
  process.stderr.write(`floodgate: ${text}\n`);
}
