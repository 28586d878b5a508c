/**
 * Follows a Dockerfile without Docker: each stage is a folder, and COPY and RUN work in it. Users, volumes and ports
 * are ignored, because only a container has them. An unknown instruction is an error.
 */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync } from 'node:fs';
import { basename, join, matchesGlob } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface Built {
  /** The root directory of the last stage. */
  readonly root: string;
  /** The working directory of the last stage. */
  readonly workingFolder: string;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/**
 * @param context the folder that is built from
 * @param folder for the stages
 * @param env of RUN
 */
export async function followDockerfile(
  context: string,
  folder: string,
  env: Readonly<Record<string, string>>,
): Promise<Built> {
  const ignored = readFileSync(join(context, '.dockerignore'), 'utf8').split('\n').filter(Boolean);
  const isIgnored = (path: string): boolean => {
    const [first = ''] = path.slice(context.length + 1).split('/');
    return first !== '' && ignored.some((pattern) => matchesGlob(first, pattern));
  };
  let root = '';
  let workingFolder = '';
  let command: readonly string[] = [];
  let stageEnv: Record<string, string> = {};
  const inRoot = (path: string): string =>
    path.startsWith('/') ? join(root, path) : join(workingFolder, path);

  for (const [instruction, text] of instructionsOf(readFileSync(join(context, 'Dockerfile'), 'utf8'))) {
    switch (instruction) {
      case 'FROM':
        root = join(folder, / AS (\S+)$/i.exec(text)?.[1] ?? 'last');
        workingFolder = root;
        stageEnv = {};
        mkdirSync(root);
        break;
      case 'WORKDIR':
        workingFolder = inRoot(text);
        mkdirSync(workingFolder, { recursive: true });
        break;
      case 'ENV':
        stageEnv[text.slice(0, text.indexOf('='))] = text.slice(text.indexOf('=') + 1);
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
            { recursive: true, filter: (one) => stage !== undefined || !isIgnored(one) },
          );
        }
        break;
      }
      case 'RUN':
        // Only root may change owners, and users matter only in the image.
        await run('sh', ['-euc', `chown() { :; }\n${text}`], {
          cwd: workingFolder,
          env: { ...env, ...stageEnv },
        });
        break;
      case 'CMD':
        command = JSON.parse(text);
        break;
      case 'VOLUME':
      case 'USER':
      case 'EXPOSE':
        break;
      default:
        throw new Error(`The Dockerfile has ${instruction}, which this test does not know`);
    }
  }
  return { root, workingFolder, command, env: stageEnv };
}

function instructionsOf(text: string): readonly (readonly [instruction: string, text: string])[] {
  return text
    .replaceAll('\\\n', ' ')
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('#'))
    .map((line) => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1).trim()]);
}
