import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { load, loadAll, YAML11_SCHEMA } from 'js-yaml';
import type { Deployment } from 'kubernetes-types/apps/v1';
import type { Job } from 'kubernetes-types/batch/v1';
import type { NetworkPolicy } from 'kubernetes-types/networking/v1';
import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1';
import { validateEnv } from '../src/config/env.validation.js';
import { InstalledSecrets, isSetting, longestShutdownSeconds, settingsIn } from './deployment-files.js';
import { schemaFaults } from './kubernetes-schemas.js';

const FOLDER = path.resolve(__dirname, '../deploy/kubernetes');
const read = (file: string) => readFileSync(path.join(FOLDER, file), 'utf8');

interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string };
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
const find = <Kind>(kind: string, name: string): Kind => {
  const found = manifests.find((each) => each.kind === kind && each.metadata.name === `notebridge-${name}`);
  if (!found) throw new Error(`there is no ${kind} notebridge-${name}`);
  return found as Kind;
};
const workloads: readonly (readonly [string, Deployment | Job])[] = [
  ['api', find<Deployment>('Deployment', 'api')],
  ['worker', find<Deployment>('Deployment', 'worker')],
  ['migrate', find<Job>('Job', 'migrate')],
];
const podOf = ({ spec }: Deployment | Job) => spec?.template.spec;
const containerOf = (manifest: Deployment | Job) => podOf(manifest)?.containers[0];

/** The settings of a container: those of all, then its own. */
const settingsOf = (manifest: Deployment | Job): Record<string, string> => ({
  ...settingsIn(read('settings.env')),
  ...Object.fromEntries((containerOf(manifest)?.env ?? []).map(({ name, value = '' }) => [name, value])),
});

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

  it.each(workloads)('gives the %s only settings that the service has', (_, manifest) => {
    expect(Object.keys(settingsOf(manifest)).filter((name) => !isSetting(name))).toEqual([]);
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
    const secretsOf = (manifest: Deployment | Job) =>
      podOf(manifest)?.volumes?.flatMap(({ secret }) => secret?.secretName ?? []);
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
    expect(pod?.securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: 1000,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    expect(containerOf(manifest)?.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
  });

  it.each(workloads.slice(0, 2))(
    'restarts the %s by /health/live, and sends requests by /health/ready',
    (_, manifest) => {
      const { startupProbe, livenessProbe, readinessProbe } = containerOf(manifest) ?? {};
      expect([startupProbe, livenessProbe, readinessProbe].map((probe) => probe?.httpGet?.path)).toEqual([
        '/health/live',
        '/health/live',
        '/health/ready',
      ]);
    },
  );

  it.each(workloads.slice(0, 2))('lets the %s finish its delay and longest call when it stops', (_, manifest) => {
    const { SHUTDOWN_DELAY_SECONDS: delay } = settingsOf(manifest);
    expect(podOf(manifest)?.terminationGracePeriodSeconds).toBeGreaterThan(longestShutdownSeconds(delay !== '0'));
  });

  it.each(['api', 'worker'])('keeps a %s while nodes are drained and pods are replaced', (role) => {
    const { spec } = find<Deployment>('Deployment', role);
    const { spec: budget } = find<PodDisruptionBudget>('PodDisruptionBudget', role);
    expect(spec?.replicas).toBeGreaterThan(Number(budget?.minAvailable));
    expect(spec?.strategy?.rollingUpdate).toEqual({ maxUnavailable: 0, maxSurge: 1 });
    for (const { selector } of [spec ?? {}, budget ?? {}] as { selector?: { matchLabels?: object } }[])
      expect(selector?.matchLabels).toEqual(spec?.template.metadata?.labels);
  });

  it('lets only the ingress controller and Prometheus in', () => {
    const policies = manifests.filter(({ kind }) => kind === 'NetworkPolicy') as NetworkPolicy[];
    const sources = policies.flatMap(({ spec }) =>
      spec?.ingress?.flatMap(({ from = [] }) =>
        from.flatMap(({ namespaceSelector }) => Object.values(namespaceSelector?.matchLabels ?? {})),
      ),
    );
    expect(sources).toEqual(['monitoring', 'ingress-nginx']);
    expect(policies[0]?.spec).toMatchObject({
      podSelector: { matchLabels: { 'app.kubernetes.io/name': 'notebridge' } },
      policyTypes: ['Ingress', 'Egress'],
    });
  });
});
