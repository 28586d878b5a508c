/**
 * PostgreSQL as a process of the tests' own: on a free port of loopback and a socket in its temporary folder. It refuses to
 * run as root, so root runs it as somebody else. It ends with the process that started it, whatever ends that.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, chownSync, constants, globSync, readFileSync } from 'node:fs';
import { Socket } from 'node:net';
import { delimiter, join } from 'node:path';
import { busyFor } from './busy.ts';
import { freePort } from './ports.ts';
import { makeFolder, removeFolder } from './temporary-folder.ts';
import { until } from './until.ts';

export interface PostgresServer {
  /** URL of the database `postgres` for its owner, who needs no password. */
  readonly url: string;
  readonly port: number;
  /** The folder of this server, for its data and socket. Tests may add files. */
  readonly folder: string;
  /** Sends SIGKILL to all of its processes at once, as when the machine fails. */
  kill(): Promise<void>;
  /** Sends SIGSTOP to all of its processes: connections stay open, and nothing answers. */
  freeze(): void;
  thaw(): void;
  /** Starts it again, on the same port and data. */
  restart(): Promise<void>;
  /** Ends it, and deletes its data. */
  close(): Promise<void>;
}

export interface PostgresOptions {
  /** true: commits are written to the disk. Otherwise, tests are several times as fast. */
  readonly isDurable?: boolean;
  /** More settings of the server. */
  readonly settings?: readonly string[];
}

/** The folder of its programs; Debian keeps them off PATH. null if they are not installed. */
export function postgresFolder(): string | null {
  const folders = [
    ...globSync('/usr/lib/postgresql/*/bin').sort().reverse(),
    ...(process.env.PATH ?? '').split(delimiter),
  ];
  return folders.find((folder) => isProgram(join(folder, 'initdb'))) ?? null;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function someoneElse(): { readonly uid: number; readonly gid: number } | null {
  if (process.getuid?.() !== 0) return null;
  const users = readFileSync('/etc/passwd', 'utf8').split('\n');
  const line = ['postgres:', 'nobody:'].map((name) => users.find((user) => user.startsWith(name)));
  const [, , uid, gid] = (line[0] ?? line[1] ?? '').split(':');
  if (uid === undefined || gid === undefined) throw new Error('There is no user nobody to run PostgreSQL as');
  return { uid: Number(uid), gid: Number(gid) };
}

/** Runs `$@` until our end of the pipe on descriptor 3 is closed. */
const WATCHED = `exec 3<&0; "$@" <&- & server=$!; (cat <&3; kill -QUIT $server) >/dev/null 2>&1 & wait $server`;
/** The order of a natural language: our own sorting must not depend on it. */
const LOCALE = ['--locale-provider=icu', '--icu-locale=en-US', '--locale=C.UTF-8'];
const fast = ['fsync=off', 'full_page_writes=off'];

export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const programs = postgresFolder();
  if (programs === null) throw new Error('There is no PostgreSQL; npm test installs it or says how');
  const folder = makeFolder();
  const who = someoneElse();
  if (who !== null) chownSync(folder, who.uid, who.gid);
  const data = join(folder, 'data');
  const as = { ...(who ?? {}), cwd: folder, env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8' } };
  const login = ['-U', 'postgres', '--auth=trust', '--encoding=UTF8'];
  execFileSync(join(programs, 'initdb'), ['-D', data, ...login, ...LOCALE, '--no-sync'], {
    ...as,
    stdio: 'ignore',
  });
  const port = await freePort();
  const settings = [
    'listen_addresses=127.0.0.1',
    `unix_socket_directories=${folder}`,
    'max_connections=500',
    'shared_buffers=128MB',
    ...(options.isDurable === true ? [] : fast),
    ...(options.settings ?? []),
  ].flatMap((setting) => ['-c', setting]);
  const command = [join(programs, 'postgres'), '-D', data, '-p', String(port), ...settings];

  const launch = async (): Promise<ChildProcess> => {
    const child = spawn('sh', ['-c', WATCHED, 'sh', ...command], {
      ...as,
      stdio: ['pipe', 'ignore', 'pipe'],
    });
    let log = '';
    await new Promise<void>((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', (code) => reject(new Error(`PostgreSQL ended with ${code}: ${log}`)));
      child.stderr.on('data', (chunk: Buffer) => {
        log = (log + chunk.toString()).slice(-65_536);
        if (/database system is ready to accept connections/.test(log)) resolve();
      });
    });
    // A test that does not close it can still end.
    child.unref();
    for (const stream of [child.stdin, child.stderr]) if (stream instanceof Socket) stream.unref();
    return child;
  };
  let child = await launch();
  const ended = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  };
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    port,
    folder,
    async kill() {
      child.ref();
      const all = stoppedProcessesOf(data);
      signal(all, 'SIGKILL');
      await ended();
      // The next server refuses to start while one of them still holds the memory that they share.
      await until(() => all.every(hasEnded), 'all processes of PostgreSQL have ended');
    },
    freeze: () => signal(stoppedProcessesOf(data), 'SIGSTOP'),
    thaw: () => signal(processesOf(data), 'SIGCONT'),
    async restart() {
      child = await launch();
    },
    async close() {
      child.ref();
      child.stdin?.end();
      await ended();
      removeFolder(folder);
    },
  };
}

function signal(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name);
    } catch {
      // The process has ended in the meantime.
    }
  }
}

/** Stops the first process before the others are listed, so that it cannot start one that is not in the list. */
function stoppedProcessesOf(data: string): readonly number[] {
  const first = firstProcessOf(data);
  process.kill(first, 'SIGSTOP');
  while (!['T', null].includes(stateOf(first))) busyFor(1);
  return processesOf(data);
}

function hasEnded(pid: number): boolean {
  // A process that has ended stays in the list until its parent has collected its status.
  return [null, 'Z', 'X'].includes(stateOf(pid));
}

/** Returns the letter of its state, as in proc(5); null if there is no such process. */
function stateOf(pid: number): string | null {
  try {
    return /^State:\s+(\w)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? null;
  } catch {
    return null;
  }
}

function firstProcessOf(data: string): number {
  return Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0]);
}

/** Returns the first process and those that it started: one for each connection, and a few for itself. */
function processesOf(data: string): readonly number[] {
  const first = firstProcessOf(data);
  const children = readFileSync(`/proc/${first}/task/${first}/children`, 'utf8').trim();
  return [first, ...(children === '' ? [] : children.split(' ').map(Number))];
}
