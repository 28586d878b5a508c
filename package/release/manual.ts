/** The manual page of the command, written by the command itself. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { COMMANDS } from '../../gateway/cli/commands/all.ts';

interface Command {
  /** Node.js, and the program. */
  readonly call: readonly [string, string];
  readonly version: string;
  /** YYYY-MM-DD */
  readonly date: string;
}

/** @param tree folder that stands for the root of the file system */
export function writeManual(tree: string, command: Command): void {
  const write = (name: string, content: string | Buffer): void => {
    const file = join(tree, 'usr/share', name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  };
  write('man/man1/floodgate.1.gz', gzipSync(manualPage(command), { level: 9 }));
}

function manualPage(command: Command): string {
  const help = (...args: string[]): string => run(command, [...args, '--help']);
  return [
    `.TH FLOODGATE 1 ${command.date} "Floodgate ${command.version}" "User commands"`,
    '.SH NAME',
    'floodgate \\- checks, explains, rehearses and changes the limits of a gateway',
    '.SH SYNOPSIS',
    'floodgate COMMAND [OPTIONS]',
    '.SH DESCRIPTION',
    ...verbatim(help()),
    '.SH COMMANDS',
    ...Object.keys(COMMANDS).flatMap((name) => [`.SS floodgate ${name}`, ...verbatim(help(name))]),
    '.SH FILES',
    '.TP',
    '.I /etc/floodgate/policies.yaml',
    'the limits',
    '.TP',
    '.I /etc/floodgate/gateway.env',
    'the settings of the gateway',
    '',
  ].join('\n');
}

/** Returns lines that the program for manual pages prints as they are. */
function verbatim(text: string): readonly string[] {
  const lines = text.trim().split('\n');
  // A backslash begins an escape, and a point or an apostrophe at the start of a line begins a request.
  const escaped = lines.map((line) => line.replaceAll('\\', '\\e').replaceAll('-', '\\-'));
  return ['.nf', ...escaped.map((line) => line.replace(/^(?=[.'])/, '\\&')), '.fi'];
}

function run({ call: [node, program] }: Command, args: readonly string[]): string {
  const env = { PATH: '/usr/bin:/bin', LC_ALL: 'C.UTF-8', NODE_DISABLE_COMPILE_CACHE: '1' };
  return execFileSync(node, [program, ...args], { encoding: 'utf8', env });
}
