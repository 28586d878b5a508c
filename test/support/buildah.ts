/**
 * Builds the image for real where buildah is installed: it needs root and no daemon. No registry is asked: the base image
 * is made of what this machine has, the project's Node, npm, and a few programs with their libraries.
 */
import { execFile, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { projectRoot } from './process.ts';

const execute = promisify(execFile);
const PROGRAMS = ['sh', 'mkdir', 'chown', 'rm', 'ln', 'env', 'id'];
/** Further libraries, because `ldd` lists only those that the programs above need. */
const LIBRARIES = [
  'librt.so.1',
  'libdl.so.2',
  'libpthread.so.0',
  'libm.so.6',
  'libresolv.so.2',
  'libgcc_s.so.1',
];

export const hasBuildah = process.getuid?.() === 0 && spawnSync('buildah', ['--version']).status === 0;

interface Buildah {
  (...args: readonly string[]): Promise<string>;
  /** Options of every call. */
  readonly storage: readonly string[];
}

/** @param folder for everything it stores */
export function openBuildah(folder: string): Buildah {
  writeFileSync(join(folder, 'policy.json'), '{"default":[{"type":"insecureAcceptAnything"}]}');
  writeFileSync(
    join(folder, 'registries.conf'),
    'unqualified-search-registries=[]\nshort-name-mode="permissive"\n',
  );
  const storage = [
    '--root',
    join(folder, 'store'),
    '--runroot',
    join(folder, 'run'),
    '--storage-driver',
    'vfs',
  ];
  const call = async (command = '', ...args: readonly string[]): Promise<string> => {
    const all = [...storage, '--registries-conf', join(folder, 'registries.conf'), command, ...args];
    const { stdout } = await execute('buildah', all, { maxBuffer: 1 << 24 });
    return stdout.trim();
  };
  return Object.assign(call, { storage });
}

/** Options of `bud` and `from`: nothing is pulled, and no namespaces are needed. */
export function offline(folder: string): readonly string[] {
  return ['--pull-never', '--signature-policy', join(folder, 'policy.json'), '--isolation', 'chroot'];
}

/** @returns a folder that is `/` of a base image with a user `node`, as that of Docker's `node` image, and its ENV */
export function makeBase(folder: string): { readonly root: string; readonly env: string } {
  const root = join(folder, 'base');
  for (const path of [
    'bin',
    'usr/bin',
    'usr/local/bin',
    'usr/local/lib/node_modules',
    'usr/local/include/node',
    'etc/ssl',
    'home/node',
    'tmp',
    'var/tmp',
  ]) {
    mkdirSync(join(root, path), { recursive: true });
  }
  const programs = PROGRAMS.map((name) => {
    const path = realpathSync(['/bin', '/usr/bin'].map((at) => join(at, name)).find(existsSync) ?? name);
    cpSync(path, join(root, 'bin', name));
    return path;
  });
  const node = realpathSync(join(projectRoot, 'node_modules/.bin/node'));
  cpSync(node, join(root, 'usr/local/bin/node'));
  const npm = dirname(dirname(realpathSync(spawnSync('which', ['npm'], { encoding: 'utf8' }).stdout.trim())));
  cpSync(npm, join(root, 'usr/local/lib/node_modules/npm'), { recursive: true, dereference: true });
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(root, 'usr/local/bin/npm'));
  symlinkSync('/bin/env', join(root, 'usr/bin/env'));
  const { stdout } = spawnSync('ldd', [...programs, node], { encoding: 'utf8' });
  const linked = new Set([...stdout.matchAll(/(\/\S+\.so\S*) \(0x/g)].map(([, path = '']) => path));
  const libc = [...linked].find((path) => path.endsWith('/libc.so.6')) ?? '';
  for (const name of [...LIBRARIES, 'libnss_files.so.2', 'libnss_dns.so.2'])
    linked.add(join(dirname(libc), name));
  for (const path of linked) {
    if (existsSync(path)) cpSync(realpathSync(path), join(root, path));
  }
  cpSync('/etc/ssl/certs', join(root, 'etc/ssl/certs'), { recursive: true, dereference: true });
  writeFileSync(
    join(root, 'etc/passwd'),
    'root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n',
  );
  writeFileSync(join(root, 'etc/group'), 'root:x:0:\nnode:x:1000:\n');
  // If a proxy inspects TLS, npm needs to know the proxy's authority.
  const { NODE_EXTRA_CA_CERTS: authority = '' } = process.env;
  if (!existsSync(authority)) return { root, env: '' };
  cpSync(authority, join(root, 'etc/ssl/authority.pem'), { dereference: true });
  return { root, env: 'NODE_EXTRA_CA_CERTS=/etc/ssl/authority.pem' };
}
