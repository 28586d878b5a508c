/** The Kubernetes manifests fit the gateway, the image and each other. Their schemas are checked by test:all. */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { parse, parseAllDocuments } from 'yaml';
import { GATEWAY_VARIABLES, readConfig } from '#gateway/config.ts';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { runTests } from '#gateway/workbench/rehearsal/policy-tests.ts';
import { startTestAdmin } from '#test/support/admin.ts';
import { startTestGateway } from '#test/support/gateway.ts';
import { projectRoot } from '#test/support/process.ts';

const FOLDER = join(projectRoot, 'examples/kubernetes');
const read = (name: string): string => readFileSync(join(FOLDER, name), 'utf8');
const resourcesIn = (name: string) => parseAllDocuments(read(name), { merge: true }).map((one) => one.toJS());

const { resources, configMapGenerator, secretGenerator, images } = parse(read('kustomization.yaml'));
const [deployment] = resourcesIn('deployment.yaml');
const { spec: pod, metadata } = deployment.spec.template;
const [container] = pod.containers;
const [, redis] = resourcesIn('redis.yaml');
const dockerfile = readFileSync(join(projectRoot, 'Dockerfile'), 'utf8');
const lines = read('settings.env')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'));
const settings: Record<string, string> = Object.fromEntries(lines.map((line) => line.split('=')));

t.test('every file is part of the kustomization, and the pods use what it makes', async (t) => {
  const [own, policies] = configMapGenerator;
  t.strictSame(own.envs, ['settings.env']);
  const named = [...resources, 'kustomization.yaml', ...policies.files, ...own.envs];
  // Left out, because clusters without the Prometheus Operator refuse it.
  t.strictSame(
    globSync('*', { cwd: FOLDER, exclude: ['secret.env'] }).sort(),
    [...named, 'service-monitor.yaml'].sort(),
  );
  t.strictSame(container.envFrom, [
    { configMapRef: { name: own.name } },
    { secretRef: { name: secretGenerator[0].name } },
  ]);
  t.equal(pod.volumes[0].configMap.name, policies.name);
  t.strictSame(policies.options, { disableNameSuffixHash: true }, 'an edited file is read without new pods');
  t.equal(container.image, images[0].name);
  const { version } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8'));
  // A version in development has no image, so the example keeps that of a release.
  t.match(images[0].newTag, version.endsWith('-dev') ? /^\d+\.\d+\.\d+$/ : version);
});

t.test('the settings are those of the gateway, and the policy file has no mistakes', async (t) => {
  const known = new Set<string>(GATEWAY_VARIABLES.map(({ name }) => name));
  const secrets = ['GATEWAY_ADMIN_TOKEN', 'GATEWAY_IDENTITY_SECRET'];
  for (const name of [...Object.keys(settings), ...secrets]) t.ok(known.has(name), name);
  t.doesNotThrow(() => readConfig({ ...settings, GATEWAY_ADMIN_TOKEN: 'a' }));
  t.strictSame(runTests(loadPolicies(read('policies.yaml'), 'policies.yaml')), []);
  const [monitor] = resourcesIn('service-monitor.yaml');
  const { credentials } = monitor.spec.endpoints[0].authorization;
  t.strictSame(credentials, { name: secretGenerator[0].name, key: secrets[0] });
  const page = readFileSync(join(projectRoot, 'docs/install.md'), 'utf8');
  for (const name of secrets) t.match(page, `${name}=%s`, 'the page makes the secret');
});

t.test('a pod that stops loses no request', async (t) => {
  const { GATEWAY_DRAIN_DELAY_MS: delay, GATEWAY_DRAIN_TIMEOUT_MS: timeout } = settings;
  t.ok(Number(delay) >= 5000, 'until all proxies know that the pod ends');
  t.ok(pod.terminationGracePeriodSeconds * 1000 > Number(delay) + Number(timeout));
  t.equal(deployment.spec.strategy.rollingUpdate.maxUnavailable, 0, 'the next pod is ready before');
  t.notOk('replicas' in deployment.spec, 'the autoscaler decides');
});

t.test('the probes ask paths that need no token', async (t) => {
  const gateway = await startTestGateway(t);
  const admin = await startTestAdmin(t, gateway, { token: 'secret' });
  const probes = Object.entries(container).filter(([name]) => name.endsWith('Probe'));
  t.equal(probes.length, 3);
  for (const [name, probe] of probes) {
    const { path, port } = (probe as { httpGet: { path: string; port: string } }).httpGet;
    t.equal(port, 'admin');
    t.equal((await fetch(`${admin}${path}`)).status, 200, name);
  }
  t.equal((await fetch(`${admin}/metrics`)).status, 401);
  t.equal(container.ports[1].containerPort, 9090);
});

t.test('pods fulfil the Pod Security Standard "restricted", and write nothing', async (t) => {
  for (const { spec } of [deployment.spec.template, redis.spec.template]) {
    t.match(spec.securityContext, { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
    t.equal(spec.automountServiceAccountToken, false);
    for (const { securityContext } of spec.containers)
      t.strictSame(securityContext, {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
  }
  t.match(dockerfile, `USER ${pod.securityContext.runAsUser}:${pod.securityContext.runAsGroup}\n`);
  const [, policies = ''] = /^ENV GATEWAY_POLICIES=(\S+)$/m.exec(dockerfile) ?? [];
  t.equal(container.volumeMounts[0].mountPath, dirname(policies), 'where the image looks for policies');
});

t.test('labels and names fit', async (t) => {
  const [service] = resourcesIn('service.yaml');
  const [budget] = resourcesIn('disruption-budget.yaml');
  const [forGateway, forRedis, forApplication] = resourcesIn('network-policies.yaml');
  for (const labels of [
    deployment.spec.selector.matchLabels,
    service.spec.selector,
    budget.spec.selector.matchLabels,
    forGateway.spec.podSelector.matchLabels,
    ...[forRedis, forApplication].map(({ spec }) => spec.ingress[0].from[0].podSelector.matchLabels),
  ])
    t.strictSame(labels, metadata.labels);
  t.strictSame(forRedis.spec.podSelector.matchLabels, redis.spec.template.metadata.labels);
  const [autoscaler] = resourcesIn('autoscaler.yaml');
  t.equal(autoscaler.spec.scaleTargetRef.name, deployment.metadata.name);
  t.equal(new URL(settings.GATEWAY_REDIS_URL ?? '').hostname, resourcesIn('redis.yaml')[0].metadata.name);
});
