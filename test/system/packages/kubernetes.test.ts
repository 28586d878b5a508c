/**
 * The Kubernetes manifests fit the published schemas. The package `kubernetes-models` has them as functions. They accept
 * unknown fields, so the test also looks which fields they read. It is installed here only: with its dependencies it has
 * 29 MB.
 */
import { execFile } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';
import { parseAllDocuments } from 'yaml';
import { installing } from '#test/support/installation.ts';
import { projectRoot } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const PACKAGES = ['kubernetes-models@5.1.0', '@kubernetes-models/prometheus-operator@6.0.0'];
const FOLDER = join(projectRoot, 'examples/kubernetes');

type Resource = { readonly apiVersion: string; readonly kind: string };

const folder = temporaryFolder(t);
writeFileSync(join(folder, 'package.json'), '{}');
await promisify(execFile)('npm', ['install', '--no-audit', '--no-fund', ...PACKAGES], {
  cwd: folder,
  env: installing(folder),
});

/** Returns the mistakes of a resource. */
async function mistakes(resource: Resource): Promise<readonly string[]> {
  const { apiVersion, kind } = resource;
  const isOperators = apiVersion.startsWith('monitoring.');
  const name = isOperators ? '@kubernetes-models/prometheus-operator' : 'kubernetes-models';
  const file = join(folder, 'node_modules', name, apiVersion, `${kind}.js`);
  const [, schema = ''] = /from"(\.[^"]+\/_schemas\/\w+\.js)"/.exec(readFileSync(file, 'utf8')) ?? [];
  const { validate } = await import(pathToFileURL(join(file, '..', schema)).href);
  const unread = new Set<string>();
  if (!validate(watched(resource, '', unread)))
    return validate.errors.map((error: unknown) => JSON.stringify(error));
  return [...unread].map((path) => `unknown field ${path}`);
}

/** Wraps a value so that `unread` keeps the paths of all fields that nobody has read. */
function watched(value: unknown, path: string, unread: Set<string>): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).map(([name, field]) => {
    const at = `${path}/${name}`;
    unread.add(at);
    return [name, watched(field, at, unread)] as const;
  });
  const copy = Array.isArray(value) ? fields.map(([, field]) => field) : Object.fromEntries(fields);
  return new Proxy(copy, {
    get(target, name, receiver) {
      if (typeof name === 'string') unread.delete(`${path}/${name}`);
      return Reflect.get(target, name, receiver);
    },
  });
}

function resourcesIn(text: string): readonly Resource[] {
  return parseAllDocuments(text, { merge: true }).map((document) => document.toJS());
}

const files = globSync('*.yaml', { cwd: FOLDER }).filter(
  (name) => !['kustomization.yaml', 'policies.yaml'].includes(name),
);

t.test('each file fits its schema', async (t) => {
  t.ok(files.length >= 7, files.join(' '));
  for (const file of files) {
    for (const resource of resourcesIn(readFileSync(join(FOLDER, file), 'utf8')))
      t.strictSame(await mistakes(resource), [], `${file}: ${resource.kind}`);
  }
});

t.test('a wrong value and an unknown field are found', async (t) => {
  const text = readFileSync(join(FOLDER, 'deployment.yaml'), 'utf8');
  const edited = async (from: string, to: string): Promise<readonly string[]> => {
    t.ok(text.includes(from), from);
    const [resource] = resourcesIn(text.replace(from, to));
    return resource === undefined ? [] : mistakes(resource);
  };
  t.match(await edited('containerPort: 8080', 'containerPort: http'), [/containerPort/]);
  t.match(await edited('readinessProbe', 'readyProbe'), [/^unknown field .*\/readyProbe$/]);
  t.match(await edited('runAsNonRoot', 'runAsNoRoot'), [/^unknown field .*\/securityContext\/runAsNoRoot$/]);
});
