import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { load, loadAll, YAML11_SCHEMA } from 'js-yaml';
import { validateEnv } from '../src/config/env.js';
import { InstalledSecrets, longestShutdownSeconds, settingsIn } from './deployment-files.js';

const ROOT = path.resolve(__dirname, '..');
const FOLDER = path.join(ROOT, 'deploy/kubernetes');
const read = (file: string) => readFileSync(path.join(FOLDER, file), 'utf8');

interface Container {
  args?: string[];
  env?: { name: string; value: string }[];
  livenessProbe?: { httpGet: { path: string } };
  readinessProbe?: { httpGet: { path: string } };
  startupProbe?: { httpGet: { path: string } };
  securityContext: object;
  volumeMounts: { name: string; mountPath: string }[];
}

interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string };
  // biome-ignore lint/suspicious/noExplicitAny: the schemas of Kubernetes are checked by their own test
  spec: any;
}

interface Kustomization {
  resources: string[];
  configMapGenerator: { name: string; envs?: string[] }[];
  secretGenerator: { name: string; files: string[] }[];
}

const kustomization = load(read('kustomization.yaml'), { schema: YAML11_SCHEMA }) as Kustomization;
const manifests = kustomization.resources.flatMap((file) =>
  loadAll(read(file), { schema: YAML11_SCHEMA }),
) as Manifest[];
const find = (kind: string, name: string): Manifest => {
  const found = manifests.find((each) => each.kind === kind && each.metadata.name === `notebridge-${name}`);
  if (!found) throw new Error(`there is no ${kind} notebridge-${name}`);
  return found;
};
const workloads = [
  ['api', find('Deployment', 'api')],
  ['worker', find('Deployment', 'worker')],
  ['migrate', find('Job', 'migrate')],
] as const;
const podOf = ({ spec }: Manifest) => spec.template.spec;
const containerOf = (manifest: Manifest): Container => podOf(manifest).containers[0];

/** The settings of a container: those of all, then its own. */
const settingsOf = (manifest: Manifest): Record<string, string> => ({
  ...settingsIn(read('settings.env')),
  ...Object.fromEntries((containerOf(manifest).env ?? []).map(({ name, value }) => [name, value])),
});

/** Compares objects with the types of the Kubernetes API, which are made from its schemas. @returns faults without their place */
function schemaFaults(objects: readonly { apiVersion: string; kind: string }[]): string[] {
  const group = (apiVersion: string) => (apiVersion === 'v1' ? 'core/v1' : apiVersion.replace('.k8s.io/', '/'));
  const lines = objects.map((object, at) => {
    const module = path.join(ROOT, 'node_modules/kubernetes-types', group(object.apiVersion));
    return `export const manifest${at}: import('${module}').${object.kind} = ${JSON.stringify(object)};`;
  });
  const folder = mkdtempSync(path.join(os.tmpdir(), 'notebridge-manifests-'));
  const file = path.join(folder, 'manifests.ts');
  writeFileSync(file, lines.join('\n'));
  const options = ['--noEmit', '--strict', '--ignoreConfig', '--pretty', 'false', '--lib', 'es5', '--types', ''];
  const args = [path.join(ROOT, 'node_modules/@typescript/native/bin/tsc'), ...options, file];
  const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  rmSync(folder, { recursive: true });
  const faults = stdout.split('\n').flatMap((line) => /error TS\d+: (.*)/.exec(line)?.[1] ?? []);
  if (status !== 0 && faults.length === 0) throw new Error(stdout);
  return faults;
}

describe('deploy/kubernetes', () => {
  it('names every manifest in its kustomization', () => {
    const files = readdirSync(FOLDER).filter((file) => file.endsWith('.yaml') && file !== 'kustomization.yaml');
    expect([...kustomization.resources].sort()).toEqual(files.sort());
  });

  it('matches the schemas of the Kubernetes API', () => {
    expect(schemaFaults(manifests)).toEqual([]);
  });

  it('is checked for unknown, missing and mistyped fields', () => {
    const spec = { containers: [{ name: 'x', readinesProbe: {} }, { image: 'x' }, { name: 'x', ports: 3000 }] };
    const faults = schemaFaults([{ apiVersion: 'v1', kind: 'Pod', spec } as { apiVersion: string; kind: string }]);
    expect(faults).toEqual([
      expect.stringMatching(/only specify known properties, and '"readinesProbe"'/),
      expect.stringContaining("'name' is missing"),
      expect.stringContaining("'number' is not assignable"),
    ]);
  });

  it.each(workloads)('gives the %s settings and secrets that the service accepts', (_, manifest) => {
    const secrets = new InstalledSecrets({
      'database-url': 'postgresql://service:password@db.example/notebridge?sslmode=verify-full',
      'database-owner-url': 'postgresql://owner:password@db.example/notebridge?sslmode=verify-full',
      'redis-url': 'rediss://:password@redis.example:6379',
    });
    const settings = settingsOf(manifest);
    const env = validateEnv(secrets.mountedIn(settings));
    expect(env.DATABASE_URL).toBe(secrets.read('database-url'));
    const generated = kustomization.secretGenerator.flatMap(({ files }) => files);
    for (const [name, file] of Object.entries(settings))
      if (name.endsWith('_FILE')) expect(generated).toContain(`secrets/${path.basename(file)}`);
  });

  it('mounts the secret of the owning role for the migrations alone', () => {
    const secretsOf = (manifest: Manifest) =>
      podOf(manifest).volumes.flatMap(({ secret }: { secret?: { secretName: string } }) => secret?.secretName ?? []);
    expect(workloads.map(([, manifest]) => secretsOf(manifest))).toEqual([
      ['notebridge-secrets'],
      ['notebridge-secrets'],
      ['notebridge-secrets', 'notebridge-owner'],
    ]);
    const generated = kustomization.secretGenerator.map(({ name, files }) => [
      name,
      files.includes('secrets/database-owner-url'),
    ]);
    expect(generated).toEqual([
      ['notebridge-secrets', false],
      ['notebridge-owner', true],
    ]);
  });

  it.each(workloads)('confines the %s as the restricted Pod Security Standard asks', (_, manifest) => {
    const pod = podOf(manifest);
    expect(pod).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
    expect(pod.securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: 1000,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    expect(containerOf(manifest).securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
  });

  it.each(workloads.slice(0, 2))(
    'restarts the %s by /health/live, and sends requests by /health/ready',
    (_, manifest) => {
      const { startupProbe, livenessProbe, readinessProbe } = containerOf(manifest);
      expect([startupProbe, livenessProbe, readinessProbe].map((probe) => probe?.httpGet.path)).toEqual([
        '/health/live',
        '/health/live',
        '/health/ready',
      ]);
    },
  );

  it.each(workloads.slice(0, 2))('lets the %s finish its delay and longest call when it stops', (_, manifest) => {
    const { SHUTDOWN_DELAY_SECONDS: delay } = settingsOf(manifest);
    expect(podOf(manifest).terminationGracePeriodSeconds).toBeGreaterThan(longestShutdownSeconds(delay !== '0'));
  });

  it.each(['api', 'worker'])('keeps a %s while nodes are drained and pods are replaced', (role) => {
    const { spec } = find('Deployment', role);
    expect(spec.replicas).toBeGreaterThan(find('PodDisruptionBudget', role).spec.minAvailable);
    expect(spec.strategy.rollingUpdate).toEqual({ maxUnavailable: 0, maxSurge: 1 });
    for (const { selector } of [spec, find('PodDisruptionBudget', role).spec])
      expect(selector.matchLabels).toEqual(spec.template.metadata.labels);
  });

  it('lets only the ingress controller and Prometheus in', () => {
    const policies = manifests.filter(({ kind }) => kind === 'NetworkPolicy');
    const sources = policies.flatMap(({ spec }) =>
      spec.ingress.flatMap(({ from }: { from: { namespaceSelector: { matchLabels: object } }[] }) =>
        from.flatMap(({ namespaceSelector }) => Object.values(namespaceSelector.matchLabels)),
      ),
    );
    expect(sources).toEqual(['monitoring', 'ingress-nginx']);
    expect(policies[0]?.spec).toMatchObject({
      podSelector: { matchLabels: { 'app.kubernetes.io/name': 'notebridge' } },
      policyTypes: ['Ingress', 'Egress'],
    });
  });
});
