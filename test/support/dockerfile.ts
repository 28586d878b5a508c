/**
 * Follows a Dockerfile without Docker: each stage is a folder, and COPY and RUN work in it. Users, volumes, ports, labels
 * and health checks are ignored, because only a container has them. An unknown instruction is an error. RUN is not
 * confined to its folder, so a Dockerfile that names absolute paths in RUN is refused.
 */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync } from 'node:fs';
import { basename, join, matchesGlob } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
/** Links stay as they are, because some point to files of a later stage. */
const COPIED = { recursive: true, verbatimSymlinks: true };

export interface Built {
  readonly workingFolder: string;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/**
 * @param context the folder that is built from
 * @param folder for the stages
 * @param env of RUN
 * @returns the stages by their names
 */
export async function followDockerfile(
  context: string,
  folder: string,
  env: Readonly<Record<string, string>>,
): Promise<Readonly<Record<string, Built>>> {
  const stages: Record<string, Built> = {};
  const ignored = readFileSync(join(context, '.dockerignore'), 'utf8').split('\n').filter(Boolean);
  const isIgnored = (path: string): boolean => {
    const [first = ''] = path.slice(context.length + 1).split('/');
    return first !== '' && ignored.some((pattern) => matchesGlob(first, pattern));
  };
  let root = '';
  let workingFolder = '';
  let command: readonly string[] = [];
  let stageEnv: Record<string, string> = {};
  let name = '';
  const inRoot = (path: string): string =>
    path.startsWith('/') ? join(root, path) : join(workingFolder, path);

  for (const [instruction, text] of instructionsOf(readFileSync(join(context, 'Dockerfile'), 'utf8'))) {
    switch (instruction) {
      case 'FROM': {
        const [base = '', , as] = text.split(' ');
        name = as ?? 'last';
        root = join(folder, name);
        // A base image has this folder.
        mkdirSync(join(root, 'usr/local/bin'), { recursive: true });
        const from = stages[base];
        if (from !== undefined) cpSync(join(folder, base), root, COPIED);
        workingFolder =
          from === undefined ? root : join(root, from.workingFolder.slice(folder.length + 1 + base.length));
        stageEnv = { ...from?.env };
        command = from?.command ?? [];
        break;
      }
      case 'WORKDIR':
        workingFolder = inRoot(text);
        mkdirSync(workingFolder, { recursive: true });
        break;
      case 'ENV':
        {
          const value = text.slice(text.indexOf('=') + 1).replaceAll('"', '');
          // RUN needs the programs of this machine.
          if (!text.startsWith('PATH='))
            stageEnv[text.slice(0, text.indexOf('='))] = value.startsWith('/') ? inRoot(value) : value;
        }
        break;
      case 'COPY': {
        const [, stage] = /^--from=(\S+) /.exec(text) ?? [];
        const paths = text.replace(/^--from=\S+ /, '').split(' ');
        const to = paths.pop() ?? '';
        for (const path of paths) {
          const isInto = paths.length > 1 || to.endsWith('/');
          cpSync(
            join(stage === undefined ? context : join(folder, stage), path),
            isInto ? join(inRoot(to), basename(path)) : inRoot(to),
            { ...COPIED, filter: (one) => stage !== undefined || !isIgnored(one) },
          );
        }
        break;
      }
      case 'RUN':
        if (/(?:^|[\s"'])\/(?!dev\/null)/.test(text)) throw new Error(`RUN names an absolute path: ${text}`);
        // Only root may change owners, and users matter only in the image.
        await run('sh', ['-euc', `chown() { :; }\n${text}`], {
          cwd: workingFolder,
          env: { ...env, ...stageEnv },
        });
        break;
      case 'CMD':
        command = JSON.parse(text);
        break;
      case 'ARG':
      case 'LABEL':
      case 'HEALTHCHECK':
      case 'VOLUME':
      case 'USER':
      case 'EXPOSE':
        break;
      default:
        throw new Error(`The Dockerfile has ${instruction}, which this test does not know`);
    }
    stages[name] = { workingFolder, command, env: stageEnv };
  }
  return stages;
}

function instructionsOf(text: string): readonly (readonly [instruction: string, text: string])[] {
  return text
    .replaceAll('\\\n', ' ')
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('#'))
    .map((line) => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1).trim()]);
}
